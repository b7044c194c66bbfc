#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# subtests: yes
# Pass C: a read-only LUN: nothing is written, and all that reads works.
. "$(dirname "$0")/pass.sh"

conform_pass pass_c.txt '' 'read_only = true'
