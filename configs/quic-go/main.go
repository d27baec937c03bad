// SPDX-License-Identifier: BSD-3-Clause

// quic-go as a sender or a receiver of bytes: bulk serve, or bulk ADDRESS BYTES.
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
)

var config = &quic.Config{
	Tracer:                     qlog.DefaultConnectionTracer, // into $QLOGDIR
	MaxStreamReceiveWindow:     64 << 20,
	MaxConnectionReceiveWindow: 64 << 20,
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
	listener, err := quic.ListenAddr(":4433", &tls.Config{Certificates: own, NextProtos: []string{"bulk"}}, config)
	check(err)
	for {
		connection, err := listener.Accept(context.Background())
		check(err)
		go func() {
			stream, err := connection.AcceptStream(context.Background())
			check(err)
			io.Copy(io.Discard, stream)
			stream.Close()
		}()
	}
}

func send(to string, bytes int64) {
	connection, err := quic.DialAddr(context.Background(), to,
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"bulk"}}, config)
	check(err)
	stream, err := connection.OpenStreamSync(context.Background())
	check(err)
	began := time.Now()
	for left := bytes; left > 0; left -= 1 << 16 {
		_, err = stream.Write(make([]byte, min(left, 1<<16)))
		check(err)
	}
	check(stream.Close())
	_, err = io.Copy(io.Discard, stream)
	check(err)
	fmt.Println(bytes, "bytes in", time.Since(began))
	connection.CloseWithError(0, "")
}

func main() {
	if len(os.Args) < 3 {
		serve()
	}
	bytes, err := strconv.ParseInt(os.Args[2], 10, 64)
	check(err)
	send(os.Args[1], bytes)
}
