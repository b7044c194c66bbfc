# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# One pass of iscsi-test-cu: a yoked with one LUN in memory over two portals, every test that
# EXPECTATIONS names against it.
. "$(dirname "${BASH_SOURCE[0]}")/conform.sh"

# conform_pass EXPECTATIONS [BACKING_SETTINGS [LUN_SETTINGS]]
conform_pass() {
	local expectations port1 port2
	expectations=$(dirname "${BASH_SOURCE[0]}")/$1
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
backing "ram" { driver = "ram"  size = "256M"  ${2:-} }
target "iqn.2026-11.org.yoke:conform" {
  portals = { "left", "right" }
  allow = { "*" }
  lun "0" { backing = "ram"  ${3:-} }
}
CONF
	start_yoked "$T/yoke.conf"
	every_test_named "$expectations"
	conform "$expectations" \
		"iscsi://127.0.0.1:$port1/iqn.2026-11.org.yoke:conform/0" \
		"iscsi://127.0.0.1:$port2/iqn.2026-11.org.yoke:conform/0"
}
