#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# subtests: yes
# Pass A: a LUN of 512-byte blocks, physical block = logical block, in memory.
. "$(dirname "$0")/conform.sh"

port1=$(free_port)
port2=$(free_port)
cat >"$T/yoke.conf" <<CONF
node "conform" {
  number = 1
  state_dir = "$T/state"
  control = "$T/yoked.sock"
}
portal "left"  { listen = { "127.0.0.1:$port1" }  group = 1 }
portal "right" { listen = { "127.0.0.1:$port2" }  group = 2 }
backing "ram" { driver = "ram"  size = "256M" }
target "iqn.2026-11.org.yoke:conform" {
  portals = { "left", "right" }
  allow = { "*" }
  lun "0" { backing = "ram" }
}
CONF
start_yoked "$T/yoke.conf"
expectations=$(dirname "$0")/pass_a.txt
every_test_named "$expectations"
conform "$expectations" \
	"iscsi://127.0.0.1:$port1/iqn.2026-11.org.yoke:conform/0" \
	"iscsi://127.0.0.1:$port2/iqn.2026-11.org.yoke:conform/0"
