#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# subtests: yes
# Pass B: 512-byte blocks on 4096-byte physical blocks: what needs a physical block larger than a logical one.
. "$(dirname "$0")/pass.sh"

conform_pass pass_b.txt 'physical_block = 4096'
