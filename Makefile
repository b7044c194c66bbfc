# SPDX-License-Identifier: MIT
# Yoke: one Makefile, no configure. Sources are found by wildcard: a new file needs no edit here.
#
#   make [MODE=release|debug|asan|tsan|cov|sim] [CC=clang] programs in build/$(MODE)/
#   make check                                             from a clean machine to a tested tree
#   make run                                               from a clean machine to a serving target

VERSION = 0.1.0
MODE   ?= release
prefix ?= /usr/local
FUZZ_SECONDS ?= 600

ifeq ($(origin CC),default)
CC = gcc
endif
AR = gcc-ar
B  = build/$(MODE)

# Short lines; V=1 shows the commands.
Q   = $(if $(V),,@)
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $@)

# A make started without -j uses every core; a sub-make takes part in its parent's job server.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc) --no-print-directory
endif

WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wvla -Werror
HARD = -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong
OPT_release = $(HARD)
OPT_debug   = -Og
OPT_asan    = -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
OPT_tsan    = -O1 -fno-omit-frame-pointer -fsanitize=thread
OPT_cov     = -O0 --coverage
# Rules can be switched off at run time: never for programs that serve.
OPT_sim     = -O2 -DYOKE_CANARIES
OPT_fuzz    = -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined
ifndef OPT_$(MODE)
$(error MODE=$(MODE) is unknown: use release, debug, asan, tsan, cov or sim)
endif

# Expanded once, at first use: `make deps` must work before pkg-config is there.
PKGS = liburing openssl libisal libconfuse jansson libbsd uuid blkid libiscsi
once = $(eval $(1) := $(shell pkg-config $(2)))$($(1))
PKG_CFLAGS   = $(call once,PKG_CFLAGS,--cflags $(PKGS))
PKG_LIBS     = $(call once,PKG_LIBS,--libs $(PKGS))
CHECK_CFLAGS = $(call once,CHECK_CFLAGS,--cflags check)
CHECK_LIBS   = $(call once,CHECK_LIBS,--libs check)

ALL_CPPFLAGS = -I. -D_GNU_SOURCE $(PKG_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS   = -std=gnu17 -g -fPIE $(OPT_$(MODE)) $(WARN) $(CFLAGS)
ALL_LDFLAGS  = -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(OPT_$(MODE)) $(LDFLAGS)
LIBS         = $(PKG_LIBS) -lev -lpthread -lm

# Programs: each exists as soon as its main source does.
MAINS   = target/main.c ctl/yokectl.c bench/main.c replication/witnessd.c
DIRS    = core backstore raid mpio replication target target/scsi target/iscsi
objects = $(patsubst %.c,$(B)/%.o,$(filter-out $(MAINS),$(wildcard $(1))))
LIB_O   = $(call objects,$(DIRS:%=%/*.c))
CTL_O   = $(call objects,ctl/*.c)
BENCH_O = $(call objects,bench/*.c)
FAKE_O  = $(call objects,tests/fake/*.c)
SIM_O   = $(filter-out $(B)/tests/sim/sim.o,$(call objects,tests/sim/*.c))
TESTS   = $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
FUZZERS = $(patsubst tests/fuzz/%.c,$(B)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
LIB     = $(B)/libyoke.a
WIRE_TOOLS = malloc_count.so lock_load lock_fight
TEST_LIBS = $(B)/libsim.a $(B)/libfake.a $(LIB) $(B)/libctl.a $(B)/libbench.a
group   = -Wl,--start-group $(1) -Wl,--end-group

program  = $(if $(wildcard $(2)),$(B)/$(1))
PROGRAMS = $(call program,yoked,target/main.c) $(call program,yokectl,ctl/yokectl.c) \
	   $(call program,yoke-bench,bench/main.c) \
	   $(call program,yoke-witness,replication/witnessd.c)
PAGES    = $(patsubst man/%.scd,build/man/%,$(wildcard man/*.scd))

all: $(PROGRAMS) $(LIB)
tests: all $(TESTS) $(FUZZERS)

$(B)/yoked:        $(B)/target/main.o $(LIB)
$(B)/yokectl:      $(B)/ctl/yokectl.o $(B)/libctl.a $(LIB)
$(B)/yoke-bench:   $(B)/bench/main.o $(B)/libbench.a $(LIB)
$(B)/yoke-witness: $(B)/replication/witnessd.o $(LIB)
$(B)/yoked $(B)/yokectl $(B)/yoke-bench $(B)/yoke-witness:
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(call group,$(filter %.a,$^)) $(LIBS)

$(LIB): $(LIB_O)
$(B)/libctl.a: $(CTL_O)
$(B)/libbench.a: $(BENCH_O)
$(B)/libfake.a: $(FAKE_O)
$(B)/libsim.a: $(SIM_O)
$(B)/lib%.a: $(B)/sources
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) crs $@ $(filter %.o,$^)

$(B)/tests/test_%: $(B)/tests/unit/test_%.o $(TEST_LIBS)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(call group,$(TEST_LIBS)) $(LIBS) $(CHECK_LIBS)
ifeq ($(MODE),fuzz)
$(B)/tests/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(TEST_LIBS)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $< $(call group,$(TEST_LIBS)) $(LIBS)
else
$(B)/tests/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o $(TEST_LIBS)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(call group,$(TEST_LIBS)) $(LIBS)
endif
$(B)/tests/simulate: $(B)/tests/sim/sim.o $(B)/libsim.a $(LIB)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(call group,$(filter %.a,$^)) $(LIBS)
# Measuring sticks, which link nothing of ours: counts and initiators of tests/wire, the ceiling of
# `make compare`.
$(B)/tests/malloc_count.so: tests/wire/malloc_count.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -std=gnu17 -O2 -fPIC -shared -D_GNU_SOURCE $(WARN) -o $@ $<
$(B)/tests/ceiling: $(B)/tests/compare/ceiling.o
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $<
$(B)/tests/lock_%: $(B)/tests/wire/lock_%.o
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(PKG_LIBS) -lpthread
.SECONDARY:

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(EXTRA) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(B)/tests/unit/%.o: private EXTRA = $(CHECK_CFLAGS)
$(B)/core/version.o: private EXTRA = -DYOKE_VERSION='"$(VERSION)"'
$(B)/core/version.o: $(B)/version
$(B)/bench/report_page.o: $(wildcard bench/report*.html bench/report*.css bench/report*.js)

# Rewritten only when they change: other flags rebuild all objects, a removed source its archive.
stamp = @mkdir -p $(@D); echo '$(1)' | cmp -s - $@ || echo '$(1)' >$@
$(B)/flags: FORCE
	$(call stamp,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS))
$(B)/sources: FORCE
	$(call stamp,$(LIB_O) $(CTL_O) $(BENCH_O) $(FAKE_O) $(SIM_O))
$(B)/version: FORCE
	$(call stamp,$(VERSION))
FORCE:

deps:
	@tests/deps build
tidy:
	@tests/tidy
layers:
	@tests/layers

# The compiled half of a check; deps come first because they provide the compiler.
test-builds: deps
	@$(MAKE) MODE=release all $(WIRE_TOOLS:%=build/release/tests/%)
	@$(MAKE) MODE=asan tests
	@$(MAKE) MODE=sim build/sim/tests/simulate
check: test-builds
	@tests/run $(TESTS_ARGS)
check-full: test-builds
	@tests/deps full
	@tests/run --full $(TESTS_ARGS)

# Life stories of arrays from seeds: SEED=1 N=100 LEVEL=10 SIM_ARGS="-v"
SEED = 1
N    = 100
sim:
	@tests/deps build
	@$(MAKE) MODE=sim build/sim/tests/simulate
	@build/sim/tests/simulate $(if $(LEVEL),-l $(LEVEL)) $(SIM_ARGS) $(SEED) $(N)

fuzz:
	@tests/deps fuzz
	@$(MAKE) MODE=fuzz CC=clang fuzz-run
fuzz-run: $(FUZZERS)
	@tests/fuzz/run $(FUZZ_SECONDS) $(FUZZERS)

# ROUNDS=7 SECONDS=1 COMPARE_ARGS="--json FILE"
compare:
	@tests/deps compare
	@$(MAKE) MODE=release all build/release/tests/ceiling
	@tests/compare/compare.py $(COMPARE_ARGS)
	@tests/compare/arrays.py

bench: deps
	@$(MAKE) MODE=release all
	@conf/bench.sh

run: deps
	@$(MAKE) MODE=release all
	@exec conf/run.sh

man: $(PAGES)
build/man/%: man/%.scd
	@mkdir -p $(@D)
	$(call say,MAN)
	$(Q)scdoc <$< >$@

D    = $(DESTDIR)$(prefix)
put  = install -D -m 644 -t
install: all man
	install -d $(D)/bin $(D)/lib/systemd/system $(D)/share/doc/yoke
	for f in $(PROGRAMS); do install -m 755 $$f $(D)/bin/ || exit 1; done
	for f in $(PAGES); do $(put) $(D)/share/man/man$${f##*.} $$f || exit 1; done
	sed 's|@bindir@|$(prefix)/bin|' conf/systemd/yoked.service >$(D)/lib/systemd/system/yoked.service
	install -m 644 README.md LICENSE conf/yoke.conf.example $(D)/share/doc/yoke/
	for f in $(wildcard conf/profiles/*); do $(put) $(D)/share/yoke/profiles $$f || exit 1; done
	for f in $(wildcard conf/completions/*.bash); do install -D -m 644 $$f \
		$(D)/share/bash-completion/completions/$$(basename $$f .bash) || exit 1; done

# The guest image stays: it takes minutes of downloads and holds nothing of ours.
clean:
	rm -rf $(filter-out build/guest,$(wildcard build/*))

.PHONY: all tests deps tidy layers test-builds check check-full sim fuzz fuzz-run compare bench \
	run man install clean FORCE

-include $(shell find $(B) -name '*.d' 2>/dev/null)
