#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 900
# A Linux initiator discovers the target, logs in, sees the disk as it is, writes, reads, logs out.
# shellcheck source=tests/guest/common.sh
. "$(dirname "$0")/common.sh"

start_target 64M
run_guest login.sh
printed "127\.0\.0\.1:$PORT1,1 $GUEST_TARGET"
printed "127\.0\.0\.1:$PORT2,2 $GUEST_TARGET"
printed 'iSCSI Session State: LOGGED_IN'
printed '64M disk +YOKE +'
printed '^the same$'
kernel_is_quiet
no_session_is_left
