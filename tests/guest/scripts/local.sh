#!/bin/sh
# SPDX-License-Identifier: MIT
# A user-space target in the guest, measured like LIO in lio.sh. The program
# comes along by --add-bin, the commands that start it in the foreground by
# START; the loop waits for the portal to listen.
#   run-guest --add-bin ./target -e START='target --listen 127.0.0.1:3260 ...' scripts/local.sh
#   -e PORTAL=127.0.0.1:3260, and MIB, RUNTIME, DEPTH and LOGIN as for lio.sh
# START may use the file /run/lun/0, of MIB MiB, in RAM; SETUP, if given, runs
# when the target listens.
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

MIB=${MIB:-64} PORTAL=${PORTAL:-127.0.0.1:3260}
mkdir /run/lun
mount -t tmpfs -o "size=$((MIB + 1))m" tmpfs /run/lun
truncate -s "${MIB}M" /run/lun/0

say "$START"
sh -c "$START" >/run/target.log 2>&1 &
trap '[ $? -eq 0 ] || cat /run/target.log' EXIT
wait_for 20 listening "${PORTAL#*:}"
sh -c "${SETUP:-}"

start_iscsid
TARGET=${TARGET:-$(first_target "$PORTAL")}
# shellcheck disable=SC2086
login "$TARGET" "$PORTAL" ${LOGIN:-}
bench "$(disk "$TARGET" "$PORTAL")"
logout "$TARGET" "$PORTAL"
