#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# subtests: yes
# Pass D: 4096-byte blocks.
. "$(dirname "$0")/pass.sh"

conform_pass pass_d.txt 'block_size = 4096'
