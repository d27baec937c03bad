#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# weir-quic of ngtcp2 (sender/group/quic.c says what it is): Debian's gtlsclient and gtlsserver.
here=$(dirname "$0")
options="-q --no-pmtud --max-udp-payload-size=1452 --timeout=1h ${WEIR_OUT:+--qlog-dir=$WEIR_OUT}"
cd /tmp || exit
if [ "$1" = serve ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert \
		-subj /CN=weir 2> errors || { cat errors; exit 1; }
	window="--max-data=64M --max-stream-data-bidi-remote=64M --max-window=64M --max-stream-window=64M"
	LD_PRELOAD=$here/random.so exec /usr/sbin/gtlsserver $options $window --cc="$2" '*' 4433 key cert
fi
address=$2 control=$3 connections=$4 bytes=$5 transfers=$6 data=/tmp/data
[ "$bytes" -gt 0 ] && truncate -s "$bytes" $data || data=$here/endless

put() {
	while [ "$transfers" -gt 0 ]; do
		began=$(date +%s%N)
		LD_PRELOAD=$here/random.so gtlsclient $options --cc="$control" --exit-on-all-streams-close -d $data -m PUT \
			"$address" 4433 https://weir/ || exit
		echo transfer "$bytes" $(($(date +%s%N) - began))
		transfers=$((transfers - 1))
	done
}

running=
while [ "$connections" -gt 0 ]; do
	put & running="$running $!"
	connections=$((connections - 1))
done
for one in $running; do
	wait "$one" || exit
done
