#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# subtests: yes
# Pass A: a LUN of 512-byte blocks, physical block = logical block, in memory.
. "$(dirname "$0")/pass.sh"

conform_pass pass_a.txt
