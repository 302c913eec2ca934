# keydb-server: build, tests, installation. GNU make; `make help` lists what there is to call.
#
# Variants are built side by side in build/<variant>/ (objects, one archive a layer, programs, unit
# tests). The release and debug variants leave their programs in src/ as well, where KeyDB's users
# look for them; sanitizer builds stay in build/<variant>/bin/.
#
#   make                      release: -O2, link-time optimisation, jemalloc
#   make DEBUG=1              -Og, KEYDB_DEBUG=1 (lock ranks and owners are checked)
#   make SANITIZE=address     AddressSanitizer and UndefinedBehaviorSanitizer together
#   make SANITIZE=undefined | SANITIZE=thread
#   make CC=clang             any of them with that compiler; variants of clang end in -clang
#   make V=1                  show the commands

SHELL := /bin/sh
MAKEFLAGS += --no-builtin-rules --no-builtin-variables --no-print-directory
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

# ---- The house: layers and their numbers (DESIGN.md, section 4). An include may only point to a
# smaller number or stay in its folder; tests/tidy/tidy.py and the unit tests' link lines both read
# this list.
LAYERS := base:0 ds:1 value:2 keyspace:3 resp:4 engine:5 commands:6 net:6 script:6 persist:6 \
          repl:7 module:7 active:8 cluster:9 metrics:9 server:10

comma := ,

# ---- Tools
# Sanitizers' run times differ by compiler. gcc 12's and clang 14's hold no lock of their allocators over a fork, so a
# child that is forked while another thread allocates hangs in its first allocation, now and then; clang 19's do.
SANITIZER_CC ?= clang-19
own_cc := $(if $(filter default undefined,$(origin CC)),1)
ifeq ($(own_cc),1)
CC := $(if $(SANITIZE),$(SANITIZER_CC),gcc)
endif
PKG_CONFIG ?= pkg-config
PYTHON ?= /usr/bin/python3
CLANG ?= clang
CLANG_FORMAT ?= clang-format
INSTALL ?= install

# Where it is installed, compilations that were done before come from its cache; CCACHE= goes without.
CCACHE ?= $(shell command -v ccache 2>/dev/null)

V ?= 0
ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n' '$(1)' '$(strip $(2))'
endif

# ---- Variant
DEBUG ?= 0
SANITIZE ?=
FUZZ ?= 0

cc_is_clang := $(findstring clang,$(notdir $(firstword $(CC))))

ifeq ($(FUZZ),1)
  ifneq ($(cc_is_clang),clang)
    $(error FUZZ=1 needs clang: call `make fuzz`)
  endif
  VARIANT := fuzz
  SAN_FLAGS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
  san_macro := -D__SANITIZE_ADDRESS__=1
else ifeq ($(SANITIZE),address)
  VARIANT := asan
  SAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
  san_macro := $(if $(cc_is_clang),-D__SANITIZE_ADDRESS__=1)
else ifeq ($(SANITIZE),undefined)
  VARIANT := ubsan
  SAN_FLAGS := -fsanitize=undefined -fno-sanitize-recover=undefined
else ifeq ($(SANITIZE),thread)
  VARIANT := tsan
  SAN_FLAGS := -fsanitize=thread
  san_macro := $(if $(cc_is_clang),-D__SANITIZE_THREAD__=1)
else ifneq ($(SANITIZE),)
  $(error SANITIZE=$(SANITIZE) is unknown: use address, undefined or thread)
else ifeq ($(DEBUG),1)
  VARIANT := debug
else
  VARIANT := release
endif
base_variant := $(VARIANT)
ifeq ($(filter 1,$(FUZZ) $(own_cc))$(cc_is_clang),clang)
  VARIANT := $(VARIANT)-clang
endif

BUILD := build/$(VARIANT)

# ---- Flags
# Link-time optimisation crosses the layers' archives; only gcc's release build has it by default.
LTO ?= $(if $(filter release,$(VARIANT)),1,0)

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
            -Wundef -Wwrite-strings -Wformat=2 -Wimplicit-fallthrough
WERROR ?= -Werror

# What every variant has. -fno-strict-aliasing: entries, packed encodings and wire formats are read
# from the same bytes in several widths, and no figure of ours depends on the assumption. -g1 gives
# functions and lines, which is what sanitizers' reports show, and compiles in four fifths of the time.
std_flags := -std=c11 $(if $(SAN_FLAGS),-g1,-g) -pthread -fno-strict-aliasing -fvisibility=hidden
ifeq ($(base_variant),release)
  # -mtune: without it gcc 12 zeroes and copies small structs with string instructions, which start slowly.
  OPT ?= -O2 -mtune=skylake
  # Full RELRO and no PLT: nothing to overwrite after start, and one jump less a libc call.
  HARDEN ?= -fstack-protector-strong -D_FORTIFY_SOURCE=2
  std_flags += $(HARDEN) -fPIE -fno-plt
  std_ldflags := -pie -Wl,-z,relro,-z,now
else ifeq ($(base_variant),debug)
  OPT ?= -Og
  std_flags += -fno-omit-frame-pointer
else
  OPT ?= -O1
  # gcc's name for it, which clang 14 and 19 do not define.
  std_flags += -fno-omit-frame-pointer $(SAN_FLAGS) $(san_macro)
  std_ldflags := $(SAN_FLAGS)
endif

ifeq ($(LTO),1)
  ifeq ($(cc_is_clang),clang)
    $(error LTO=1 is for gcc builds)
  endif
  std_flags += -flto=auto
  AR := gcc-ar
  # Code is generated at the link, so the optimisation flags have to be there too.
  lto_ldflags = -flto=auto $(OPT) $(std_flags)
else
  AR := ar
endif

# In sanitizer builds malloc is the sanitizer's; everywhere else it is jemalloc, whose own calls
# (mallctl, sdallocx) are only there when KEYDB_JEMALLOC is 1.
with_jemalloc := $(if $(SAN_FLAGS),0,1)
with_debug := $(if $(filter debug asan ubsan tsan fuzz,$(base_variant)),1,0)

SERVER_PKGS := libevent_core libevent_extra libevent_pthreads libssl libcrypto libsystemd liblzf lua5.1-bitop lua5.1 hiredis
TOOLS_PKGS := hiredis libssl libcrypto
pkgs_all := $(if $(filter 1,$(with_jemalloc)),jemalloc) $(SERVER_PKGS) $(TOOLS_PKGS)

# Libraries' headers are system headers: our warnings are not for them. -levent is the old joint
# library that libevent_pthreads' .pc drags in beside the core one.
pkg_cflags := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags $(pkgs_all) 2>/dev/null))
# jemalloc is linked even where no object asks for it, for the libraries' allocations.
malloc_libs := $(if $(filter 1,$(with_jemalloc)),-Wl$(comma)--push-state$(comma)--no-as-needed \
               $(shell $(PKG_CONFIG) --libs jemalloc 2>/dev/null) -Wl$(comma)--pop-state)
SERVER_LIBS := $(malloc_libs) $(filter-out -levent,$(shell $(PKG_CONFIG) --libs $(SERVER_PKGS) \
               2>/dev/null)) -lm
TOOLS_LIBS := $(malloc_libs) $(shell $(PKG_CONFIG) --libs $(TOOLS_PKGS) 2>/dev/null) -lm
TEST_LIBS = -lcmocka

ALL_CPPFLAGS := -Isrc -D_GNU_SOURCE -DKEYDB_JEMALLOC=$(with_jemalloc) -DKEYDB_DEBUG=$(with_debug) \
                $(pkg_cflags) $(CPPFLAGS)
ALL_CFLAGS := $(OPT) $(std_flags) $(WARNINGS) $(CFLAGS)
ALL_LDFLAGS := -pthread -Wl,--as-needed $(std_ldflags) $(LDFLAGS)

# ---- Sources
layer_names := $(foreach l,$(LAYERS),$(firstword $(subst :, ,$(l))))
layer_num = $(lastword $(subst :, ,$(filter $(1):%,$(LAYERS))))
# Layers with a smaller number, highest first: the order in which a linker wants archives.
layers_below = $(call reverse,$(foreach l,$(layer_names),$(if $(shell test $(call layer_num,$(l)) \
               -lt $(call layer_num,$(1)) && echo y),$(l))))
reverse = $(if $(1),$(call reverse,$(wordlist 2,999,$(1))) $(firstword $(1)))

src_of = $(sort $(wildcard src/$(1)/*.c))
obj_of = $(patsubst src/%.c,$(BUILD)/obj/%.o,$(1))

# A program's main.c is no part of its archive, so that unit tests can link the archive whole.
layer_srcs = $(filter-out src/server/main.c,$(call src_of,$(1)))
present := $(foreach l,$(layer_names),$(if $(call layer_srcs,$(l)),$(l)))
layer_lib = $(BUILD)/lib$(1).a
present_libs := $(foreach l,$(call reverse,$(present)),$(call layer_lib,$(l)))

tool_dirs := $(filter-out common,$(patsubst src/tools/%/,%,$(sort $(dir $(wildcard src/tools/*/*.c)))))
tool_srcs = $(filter-out src/tools/$(1)/main.c,$(call src_of,tools/$(1)))
tool_parts := $(foreach t,common $(tool_dirs),$(if $(call tool_srcs,$(t)),$(t)))
tool_lib = $(BUILD)/libtools-$(1).a
# Layers, beside base and resp, and other tools' parts that a tool may use; tests/tidy/tidy.py reads these lines.
tool_layers.check-rdb := persist value ds
tool_layers.check-aof := tools/check-rdb persist value ds
tool_more_libs = $(foreach l,$(tool_layers.$(1)),$(if $(filter tools/%,$(l)),$(call tool_lib,$(l:tools/%=%)),$(if \
                 $(filter $(l),$(present)),$(call layer_lib,$(l)))))
tool_base_libs := $(foreach l,resp base,$(if $(filter $(l),$(present)),$(call layer_lib,$(l))))

PROGRAMS := $(if $(wildcard src/server/main.c),keydb-server) \
            $(tool_dirs:%=keydb-%)
programs_built := $(PROGRAMS:%=$(BUILD)/bin/%)
programs_in_src := $(if $(SAN_FLAGS),,$(PROGRAMS:%=src/%))

all_srcs := $(foreach l,$(layer_names),$(call src_of,$(l))) \
            $(foreach t,common $(tool_dirs),$(call src_of,tools/$(t)))
all_headers := $(sort $(wildcard src/*/*.h src/tools/*/*.h))
all_objs := $(call obj_of,$(all_srcs))

# ---- Building
.PHONY: all libs-present FORCE
all: $(programs_built) $(programs_in_src)
	@:

libs-present:
	@command -v $(firstword $(CC)) >/dev/null || { \
	  echo "$(firstword $(CC)) is missing; this installs it: sh deps/install.sh build test" >&2; exit 1; }
	@$(PKG_CONFIG) --exists $(pkgs_all) 2>/dev/null || { \
	  echo "Libraries are missing; this installs them: sh deps/install.sh build" >&2; \
	  $(PKG_CONFIG) --print-errors --exists $(pkgs_all); exit 1; }

compile = $(CCACHE) $(CC)
# The flags are part of what an object is made from: the stamp changes only when they do.
flags_line := $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(WERROR) $(ALL_LDFLAGS) $(LTO)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(flags_line))' | cmp -s - $@ || \
	  printf '%s\n' '$(subst ','\'',$(flags_line))' >$@

$(BUILD)/obj/%.o: src/%.c $(BUILD)/flags | libs-present
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(compile) $(ALL_CPPFLAGS) $(extra_cppflags) $(ALL_CFLAGS) $(WERROR) -MMD -MP -c -o $@ $<

# The one file that may know which commit it was built from; it is rebuilt when that changes.
BUILD_INFO := $(wildcard src/*/build_info.c)
ifneq ($(BUILD_INFO),)
$(call obj_of,$(BUILD_INFO)): build/commit
$(call obj_of,$(BUILD_INFO)): extra_cppflags = -DKEYDB_GIT_SHA1='"$(shell cat build/commit)"'
build/commit: FORCE
	@mkdir -p $(@D)
	@sha=$$(git rev-parse --short=8 HEAD 2>/dev/null || echo 00000000); \
	  echo "$$sha" | cmp -s - $@ || echo "$$sha" >$@
endif

# The assembler takes the page in, which neither the compiler's list of headers nor a link-time optimiser sees.
$(call obj_of,src/metrics/page.c): src/metrics/page.html
$(call obj_of,src/metrics/page.c): ALL_CFLAGS += -fno-lto

# An archive is made anew, so that the objects of deleted files leave it; the list is what makes a
# deletion visible to make.
define archive_rule
$(1): $(2) $(1).list
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$(filter %.o,$$^)
$(1).list: FORCE
	@mkdir -p $$(@D)
	@echo '$(2)' | cmp -s - $$@ || echo '$(2)' >$$@
endef
$(foreach l,$(present),$(eval $(call archive_rule,$(call layer_lib,$(l)),$(call obj_of,$(call layer_srcs,$(l))))))
$(foreach t,$(tool_parts),$(eval $(call archive_rule,$(call tool_lib,$(t)),$(call obj_of,$(call tool_srcs,$(t))))))

link = $(Q)$(CC) $(ALL_LDFLAGS) $(lto_ldflags)

$(BUILD)/bin/keydb-server: $(call obj_of,src/server/main.c) $(present_libs) $(BUILD)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(link) -o $@ $(filter %.o %.a,$^) $(SERVER_LIBS)

# A server whose keyspace lock excludes nobody now and then: the linearizability checker has to catch it
# (tests/histories/test_broken_lock.py). One object of its own, in place of the archive's.
broken_lock := $(BUILD)/broken-lock/keydb-server
.PHONY: broken-lock
broken-lock: $(broken_lock)
	@:
$(BUILD)/broken-lock/lock.o: src/keyspace/lock.c $(BUILD)/flags | libs-present
	$(call say,CC,$< (broken))
	@mkdir -p $(@D)
	$(Q)$(compile) -DKEYDB_BREAK_LOCK $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(WERROR) -MMD -MP -c -o $@ $<
$(broken_lock): $(call obj_of,src/server/main.c) $(BUILD)/broken-lock/lock.o $(present_libs) $(BUILD)/flags
	$(call say,LINK,$@)
	$(link) -o $@ $(filter %.o %.a,$^) $(SERVER_LIBS)

define tool_rule
$(BUILD)/bin/keydb-$(1): $(call obj_of,$(wildcard src/tools/$(1)/main.c)) \
    $(foreach t,$(1) common,$(if $(filter $(t),$(tool_parts)),$(call tool_lib,$(t)))) \
    $(call tool_more_libs,$(1)) $(tool_base_libs) $(BUILD)/flags
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(link) -o $$@ $$(filter %.o %.a,$$^) $(if $(tool_layers.$(1)),$(SERVER_LIBS),$(TOOLS_LIBS))
endef
$(foreach t,$(tool_dirs),$(eval $(call tool_rule,$(t))))

# Variants take turns in src/, so a newer time says nothing there: same file, or link it.
$(programs_in_src): src/%: $(BUILD)/bin/% FORCE
	@[ $< -ef $@ ] || ln -f $< $@ 2>/dev/null || cp -f $< $@

# ---- Unit tests: tests/unit/<layer>/test_*.c, one cmocka program each. All archives go in whole:
# a layer's code that needs something from above it does not link. Further .c files of a test's
# folder are helpers of all tests there, those of tests/unit itself of all. tests/unit/tools links
# what its tests ask for.
unit_srcs := $(sort $(wildcard tests/unit/*/test_*.c))
unit_dirs := $(sort $(patsubst tests/unit/%/,%,$(dir $(unit_srcs))))
unit_progs := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(unit_srcs))
ifneq ($(filter-out $(layer_names) tools,$(unit_dirs)),)
$(error tests/unit/$(firstword $(filter-out $(layer_names) tools,$(unit_dirs))) names no layer)
endif

$(BUILD)/unit/%.o: tests/unit/%.c $(BUILD)/flags | libs-present
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(compile) $(ALL_CPPFLAGS) -Itests/unit $(ALL_CFLAGS) $(WERROR) -MMD -MP -c -o $@ $<

# So many programs with everything in them: gold, which binutils brings, links each in a third of the time; lld does
# where the compiler is ours for sanitizers. With the optimiser in the linker (LTO=1) it is left alone.
unit_link = $(link)$(if $(LTO:0=),, $(unit_linker))
unit_linker := $(if $(and $(own_cc),$(SANITIZE)),-fuse-ld=lld,$(if $(shell command -v ld.gold 2>/dev/null),-fuse-ld=gold))

unit_helpers = $(patsubst tests/unit/%.c,$(BUILD)/unit/%.o,\
               $(wildcard tests/unit/*.c) $(filter-out tests/unit/$(1)/test_%,$(wildcard tests/unit/$(1)/*.c)))
unit_libs = $(foreach l,$(1) $(call layers_below,$(1)),$(if $(filter $(l),$(present)),$(call layer_lib,$(l))))
define unit_rule
$(filter $(BUILD)/unit/$(1)/%,$(unit_progs)): $(BUILD)/unit/%: $(BUILD)/unit/%.o \
    $(call unit_helpers,$(1)) $(call unit_libs,$(1))
	$$(call say,LINK,$$@)
	$$(unit_link) -o $$@ $$(filter %.o,$$^) -Wl,--whole-archive $$(filter %.a,$$^) \
	    -Wl,--no-whole-archive $(SERVER_LIBS) $(TEST_LIBS)
endef
$(foreach l,$(filter-out tools,$(unit_dirs)),$(eval $(call unit_rule,$(l))))

unit_tools_libs := $(foreach t,$(tool_dirs) common,$(if $(filter $(t),$(tool_parts)),$(call tool_lib,$(t)))) \
                   $(tool_base_libs)
$(filter $(BUILD)/unit/tools/%,$(unit_progs)): $(BUILD)/unit/%: $(BUILD)/unit/%.o \
    $(call unit_helpers,tools) $(unit_tools_libs)
	$(call say,LINK,$@)
	$(unit_link) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
	    $(TOOLS_LIBS) $(TEST_LIBS)

# ---- Modules that tests load: tests/modules/*.c, each a shared object of its own, compiled with what
# `make install` gives to authors of modules and without a sanitizer: redis-server loads them as well.
test_modules := $(patsubst tests/modules/%.c,build/modules/%.so,$(sort $(wildcard tests/modules/*.c)))
# What authors of modules compile with: the list of functions stands in the header itself.
module_header := build/modules/include/keydbmodule.h
module_list := src/module/keydbmodule_functions.h
$(module_header): src/module/keydbmodule.h $(module_list)
	@mkdir -p $(@D)
	$(Q)awk '/^#include "module/ { while ((getline line < "$(module_list)") > 0) print line; next } { print }' $< >$@
.PHONY: test-modules
test-modules: $(test_modules)
	@:
$(test_modules): build/modules/%.so: tests/modules/%.c tests/modules/commands.h $(module_header)
	$(call say,MODULE,$@)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -g -O1 $(WARNINGS) $(WERROR) -Ibuild/modules/include -shared -fPIC -o $@.new $< && \
	  mv -f $@.new $@

# ---- Fuzzing: tests/fuzz/fuzz_*.c, libFuzzer with AddressSanitizer and UBSan.
# FUZZ_SEED and FUZZ_RUNS make a round that is the same each time (tests/run-fuzz); `make test` sets them.
FUZZ_SECONDS ?= 60
FUZZ_SEED ?=
FUZZ_RUNS ?=
fuzz_srcs := $(sort $(wildcard tests/fuzz/fuzz_*.c))
fuzz_progs := $(patsubst tests/fuzz/%.c,$(BUILD)/%,$(fuzz_srcs))

$(BUILD)/fuzz_%.o: tests/fuzz/fuzz_%.c $(BUILD)/flags | libs-present
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(compile) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(WERROR) -MMD -MP -c -o $@ $<

$(fuzz_progs): %: %.o $(present_libs)
	$(call say,LINK,$@)
	$(link) -fsanitize=fuzzer -o $@ $(filter %.o %.a,$^) $(SERVER_LIBS)

# ---- What a user calls. These targets install what is missing, then call make again, because the
# libraries' flags are read when a Makefile starts.
.PHONY: help run test gate test-all test-long test-active-rounds test-keys test-unit test-unit-built test-integration test-real test-clients bench analyze tidy format fuzz install uninstall \
        clean deps unit-programs fuzz-programs header-checks analyze-checks

# Without a -j from the caller use the cores there are.
submake = case "$$MAKEFLAGS" in *jobserver*) j= ;; *) j=-j$$(nproc 2>/dev/null || echo 2) ;; esac; \
          $(MAKE) $$j

help:
	@echo "make [all]            build src/keydb-server, src/keydb-cli, and the other tools"
	@echo "make run              install what is missing, build, start the server (ARGS='--port 7000')"
	@echo "make test             what has to pass: checks, unit tests, fuzzing, integration tests"
	@echo "make gate             that, then the short rounds of the sanitizers: what .ci/run runs"
	@echo "make test-all         everything, for hours (PARTS='asan tsan'; tests/run names them)"
	@echo "make test-modules     modules that the tests load, of tests/modules"
	@echo "make broken-lock      a server with a lock that is none, for the tests of the tests"
	@echo "make test-unit        unit tests, one cmocka program a file (debug variant by default)"
	@echo "make test-integration pytest over tests/integration, tests/differential (PYTEST_ARGS=...)"
	@echo "make test-long        kills, losses of power and mutated payloads for long (ROUNDS=500)"
	@echo "make test-active-rounds  random rounds of active replicas (ROUNDS=200 each; SEED=17 TOPOLOGY=ring: one again)"
	@echo "make test-real        modules that people run, from their packages"
	@echo "make test-clients     client libraries and job queues of other languages (CLIENTS='python node go java')"
	@echo "make fuzz             libFuzzer targets, FUZZ_SECONDS=60 each"
	@echo "make bench            tests/bench/run.py (BENCH_ARGS=...)"
	@echo "make analyze          clang's thread-safety analysis, include arrows"
	@echo "make tidy             arrows, lone headers, sizes, banned calls, contracts, formatting"
	@echo "make format           clang-format over src/ and tests/"
	@echo "make install          PREFIX=$(PREFIX) DESTDIR= REDIS_LINKS=0 ; make uninstall"
	@echo "make deps             install the packages that building and testing need"
	@echo "variables             DEBUG=1  SANITIZE=address|undefined|thread  CC=clang  LTO=0  V=1"

deps:
	@sh deps/install.sh build test bench

run:
	@sh deps/install.sh build
	+@$(submake) all
	@if [ -f keydb.conf ]; then set -- keydb.conf; fi; exec src/keydb-server "$$@" $(ARGS)

# But -n only says that it would run.
in_guard := $(if $(findstring n,$(firstword $(filter-out --%,-$(MAKEFLAGS)))),@echo,+@) MAKE='$(MAKE)' $(PYTHON) tests/guard.py sh tests/run
test:
	@sh deps/install.sh build test
	$(in_guard) test
gate:
	@sh deps/install.sh build test
	$(in_guard) gate
PARTS ?=
test-all:
	@sh deps/install.sh build test
	$(in_guard) all $(PARTS)

unit-programs: $(unit_progs)
	@:
fuzz-programs: $(fuzz_progs)
	@:

# Unit tests want the checks of the debug variant; a sanitizer variant has them as well.
ifeq ($(base_variant),release)
test-unit:
	+@$(submake) DEBUG=1 test-unit
else
test-unit: $(unit_progs)
	@V=$(V) sh tests/run-units $(BUILD) $(unit_progs)
endif
# Runs what `make -k unit-programs` could build, so that one program that does not build hides none
# of the others; it counts as failed.
test-unit-built:
	@V=$(V) sh tests/run-units $(BUILD) $(unit_progs)

test-integration: all test-modules
	@$(run_pytest) $(PYTEST_ARGS)
# Bounds are to end a hang, and for nothing else: far from what anything takes.
run_pytest = KEYDB_SERVER=$${KEYDB_SERVER:-$(BUILD)/bin/keydb-server} \
             KEYDB_TEST_TIME_FACTOR=$${KEYDB_TEST_TIME_FACTOR:-$(if $(SAN_FLAGS),10,4)} \
             $(PYTHON) tests/guard.py $(PYTHON) tests/run_pytest.py

# What looks for rare things, for long (tests/lib/rounds.py). ROUNDS=500: so many kills -9, 40 losses of
# power of each kind with 24 states of the disk each, 300,000 mutated payloads, 1,000,000 commands.
ROUNDS ?= 500
test-long: all
	@ROUNDS=$(ROUNDS) $(run_pytest) -m rounds
	+@$(if $(filter release,$(base_variant)),$(submake) DEBUG=1 test-keys,$(submake) test-keys)

# Active replicas in all topologies, so many rounds each; and in network namespaces, a tenth of that. SEED and TOPOLOGY
# are those that a failing round has printed. A debug build sets nodes' clocks as well.
SEED ?=
TOPOLOGY ?=
test-active-rounds: all
	@ROUNDS=$(ROUNDS) KEYDB_TEST_SEED=$(SEED) \
	    KEYDB_TEST_FOLDERS="tests/integration/test_active_rounds.py tests/integration/test_active_namespaces.py" \
	    $(run_pytest) -q --long -m rounds $(if $(TOPOLOGY),-k $(TOPOLOGY)-)

# The keys that commands touch against those that access control checks: 2,000 commands a round.
test-keys: $(BUILD)/unit/commands/test_acl_keys
	@KEYDB_TEST_COMMANDS=$$(($(ROUNDS) * 2000)) V=1 UNIT_TIMEOUT_S=3600 sh tests/run-units $(BUILD) $<

# Modules that people run, from their packages; what is downloaded stays in build/real.
test-real: all
	@sh tests/real/fetch
	@KEYDB_TEST_FOLDERS=tests/real $(run_pytest) $(PYTEST_ARGS)

# From the registries of four languages; what is downloaded stays in build/clients.
test-clients:
	@sh deps/install.sh build
	@sh tests/clients/install $(CLIENTS)
	+@$(submake) all
	@KEYDB_SERVER=$${KEYDB_SERVER:-$(BUILD)/bin/keydb-server} $(PYTHON) tests/clients/run.py $(CLIENTS)

bench:
	@sh deps/install.sh build bench
	+@$(submake) all
	$(PYTHON) tests/bench/run.py $(BENCH_ARGS)

fuzz:
	+@$(submake) CC=$(CLANG) FUZZ=1 fuzz-programs
	@FUZZ_SEED=$(FUZZ_SEED) FUZZ_RUNS=$(FUZZ_RUNS) sh tests/run-fuzz $(FUZZ_SECONDS) build/fuzz $(patsubst tests/fuzz/%.c,build/fuzz/%,$(fuzz_srcs))

# ---- Checks. Their results are stamps with dependencies, so that a second call looks only at what
# changed.
header_stamps := $(patsubst src/%,build/tidy/%.ok,$(all_headers))
header-checks: $(header_stamps)
	@:
# Twice, because a header must also bear being included again.
$(header_stamps): build/tidy/%.ok: src/%
	@mkdir -p $(@D)
	$(Q)printf '#include "$*"\n#include "$*"\n' | $(CC) $(ALL_CPPFLAGS) -std=c11 $(WARNINGS) -Werror \
	  -fsyntax-only -MMD -MP -MF build/tidy/$*.d -MT $@ -x c - || { echo "src/$*: does not compile alone"; exit 1; }
	@touch $@

tidy:
	+@$(MAKE) -k header-checks
	@$(PYTHON) tests/tidy/tidy.py --layers "$(LAYERS)" --clang-format "$(CLANG_FORMAT)"

format:
	@files=$$(find src tests -name '*.[ch]'); [ -z "$$files" ] || $(CLANG_FORMAT) -i $$files

analyze_stamps := $(patsubst src/%.c,build/analyze/%.ok,$(all_srcs))
analyze-checks: $(analyze_stamps)
	@:
$(analyze_stamps): build/analyze/%.ok: src/%.c | libs-present
	$(call say,ANALYZE,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(ALL_CPPFLAGS) -DKEYDB_GIT_SHA1='"0"' -std=c11 -pthread $(WARNINGS) -Wthread-safety \
	  -Wthread-safety-beta -Werror -fsyntax-only -MMD -MP -MF build/analyze/$*.d -MT $@ $<
	@touch $@

analyze:
	+@$(submake) -k analyze-checks
	@$(PYTHON) tests/tidy/tidy.py --layers "$(LAYERS)" --only arrows

clean:
	rm -rf build $(PROGRAMS:%=src/%)

include pkg/install.mk

-include $(wildcard $(BUILD)/unit/*/*.d $(BUILD)/broken-lock/*.d) $(all_objs:.o=.d) $(unit_progs:=.d) $(fuzz_progs:=.d) $(header_stamps:.ok=.d) \
         $(analyze_stamps:.ok=.d)
