#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 900
# ext4 on the target: made, filled, logged out of and in again, compared file by file, checked.
# shellcheck source=tests/guest/common.sh
. "$(dirname "$0")/common.sh"

start_target 384M
run_guest fs.sh -e FS=ext4
printed '^([5-9][0-9]|[1-9][0-9]{2,}) files are the same$'
printed 'Pass 5: Checking group summary information'
kernel_is_quiet
no_session_is_left
