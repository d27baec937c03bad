// SPDX-License-Identifier: BSD-3-Clause

// weir-quic of quic-go, over HTTP/3; sender/group/quic.c says what it is.
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math"
	"math/big"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/qlog"
)

var config = &quic.Config{
	MaxStreamReceiveWindow:     64 << 20,
	MaxConnectionReceiveWindow: 64 << 20,
	MaxIdleTimeout:             time.Hour,
	DisablePathMTUDiscovery:    true,
	InitialPacketSize:          1452,
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	check(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(err)
	own := []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}
	answer := func(_ http.ResponseWriter, request *http.Request) { io.Copy(io.Discard, request.Body) }
	server := http3.Server{Addr: ":4433", Handler: http.HandlerFunc(answer), QUICConfig: config,
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: own})}
	check(server.ListenAndServe())
}

type zeros struct{}

func (zeros) Read(to []byte) (int, error) { clear(to); return len(to), nil }

func send(address string, bytes int64, transfers int64) {
	size := bytes
	if bytes == 0 {
		size = math.MaxInt64
	}
	for ; transfers > 0; transfers-- {
		transport := &http3.Transport{QUICConfig: config, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		request, err := http.NewRequest("PUT", "https://"+address+":4433/", io.LimitReader(zeros{}, size))
		check(err)
		began := time.Now()
		answer, err := transport.RoundTrip(request)
		check(err)
		answer.Body.Close()
		fmt.Println("transfer", bytes, time.Since(began).Nanoseconds())
		transport.Close()
	}
}

func main() {
	if out := os.Getenv("WEIR_OUT"); out != "" {
		os.Setenv("QLOGDIR", out)
		config.Tracer = qlog.DefaultConnectionTracer
	}
	if os.Args[1] == "serve" {
		serve()
	}
	var number [3]int64 // connections, bytes, transfers
	for i := range number {
		var err error
		number[i], err = strconv.ParseInt(os.Args[4+i], 10, 64)
		check(err)
	}
	var all sync.WaitGroup
	for range number[0] {
		all.Go(func() { send(os.Args[2], number[1], number[2]) })
	}
	all.Wait()
}
