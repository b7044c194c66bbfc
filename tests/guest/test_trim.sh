#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 900
# ext4's discards reach the store: the file under the LUN gives up what mkfs, fstrim and the
# discard option let go, and nothing that the file system still has.
# shellcheck source=tests/guest/common.sh
. "$(dirname "$0")/common.sh"

MIB=$((1 << 20))
DISK_FILE=$T/disk.img
dd if=/dev/urandom of="$DISK_FILE" bs=1M count=96 conv=fsync 2>/dev/null
ASK=$(free_port)
# Ends with this shell.
setpriv --pdeathsig KILL python3 - "$ASK" "$DISK_FILE" <<'END' &
import os
import socket
import sys

with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        with server.accept()[0] as client:
            client.sendall(b"%d\n" % (os.stat(sys.argv[2]).st_blocks * 512))
END
start_target 96M
run_guest trim.sh -e ASK="$ASK"

mapfile -t held < <(sed -nE 's/^-- held .*: ([0-9]+)$/\1/p' "$T/out")
expect "times that the store was looked at" 7 ${#held[@]}
# change FROM TO LEAST MOST WHY: MiB between two looks, with room for metadata.
change() {
	local by=$(((held[$2] - held[$1]) / MIB))
	[[ $by -ge $3 && $by -le $4 ]] || fail "$5: the store went from ${held[$1]} to ${held[$2]}"
}
change 0 1 -96 -80 "mkfs"
change 1 2 44 56 "44 MiB written"
change 2 3 -1 1 "removed without discard"
change 3 4 -56 -38 "fstrim"
change 4 5 15 20 "16 MiB written"
change 5 6 -20 -15 "removed with discard"
printed 'provisioning_mode:unmap$'
printed '^kept: OK$'
printed 'Pass 5: Checking group summary information'
# 40 MiB at the least: the files, and what else was free.
[ "$(sed -nE 's/^.mnt: ([0-9]+) bytes trimmed$/\1/p' "$T/out")" -ge $((40 * MIB)) ] ||
	fail "fstrim had little to trim"
kernel_is_quiet
no_session_is_left
