#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 900
# dm-multipath over both portals: one map, and verified I/O goes on while a link dies and returns.
# shellcheck source=tests/guest/common.sh
. "$(dirname "$0")/common.sh"

start_target 64M 'nop_interval = "2s"  nop_timeout = "2s"'
run_guest multipath.sh
printed 'YOKE'
expect "times that I/O went on" 3 "$(grep -c '^-- I/O goes on$' "$T/out")"
printed '^[1-9][0-9]* passes verified$'
# Both sessions showed the same disk, or there were two maps of one path.
expect "names of maps" 1 "$(grep -oE '^mpath[a-z]+' "$T/out" | sort -u | wc -l)"
no_session_is_left
