#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 900
# The Linux initiator with header and data digests, each and both: no false error, data the same.
# shellcheck source=tests/guest/common.sh
. "$(dirname "$0")/common.sh"

start_target 64M
run_guest digests.sh
expect "combinations that came back the same" 4 "$(grep -c '^the same$' "$T/out")"
printed '^== HeaderDigest=CRC32C DataDigest=CRC32C$'
kernel_is_quiet
no_session_is_left
