#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 900
# sg3-utils over two paths: every VPD page, the opcodes, WRITE SAME, COMPARE AND WRITE, UNMAP and
# what GET LBA STATUS makes of it, SANITIZE.
# shellcheck source=tests/guest/common.sh
. "$(dirname "$0")/common.sh"

start_target 64M
run_guest commands.sh
printed '^all as expected$'
kernel_is_quiet
no_session_is_left
