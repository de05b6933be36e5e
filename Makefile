# holdfast: everything that is done with this tree. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PREFIX ?= /usr
SYSCONFDIR ?= /etc
DESTDIR ?=
CARGO ?= cargo
INSTALL ?= install
# Cargo's own variable is honoured everywhere.
CARGO_TARGET_DIR ?= $(CURDIR)/target
export CARGO_TARGET_DIR

RELEASE := $(CARGO_TARGET_DIR)/release
SOURCES := $(shell find core agent ctl -name target -prune -o -type f -print) Cargo.toml Cargo.lock
SCRIPTS := $(shell find .ci scripts tests packaging -type f -exec awk 'FNR == 1 && /^.!.*sh$$/ { print FILENAME }' {} +)
UNITS := $(wildcard units/*.service units/*.socket units/*.timer units/*.target)
LIBEXEC := $(PREFIX)/libexec/holdfast
ZSH_COMPLETIONS ?= $(PREFIX)/share/zsh/$(if $(wildcard /etc/debian_version),vendor-completions,site-functions)

.PHONY: help setup build check test demo bench install clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what the build needs of Debian or Fedora (as root; quick when all is there)
	@scripts/setup

build: setup-rust ## build the release binaries
	$(CARGO) build --release --locked -p holdfast-ctl -p holdfast-agent

check: setup-rust ## what CI checks: format, clippy, documentation, shell scripts, licences
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked --quiet
	@if command -v shellcheck >/dev/null; then shellcheck --severity=warning $(SCRIPTS); else echo 'check: no shellcheck here, scripts not checked'; fi
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny --offline check bans licenses sources; \
	  else echo 'check: no cargo-deny here, licences not checked'; fi

test: setup-rust ## all tests, those on test hosts included (as root)
	tests/host/setup
	$(CARGO) test --workspace --locked

demo: setup-rust ## show on a test host what a hold is (as root; KEEP=1 keeps the host)
	@tests/demo

bench: setup-rust ## measure against the floors (as root; takes minutes)
	@tests/bench/run

# Built only where it is missing or old, so that `sudo make install` needs no Rust for root.
BINARIES := $(addprefix $(RELEASE)/,holdfast holdfastd holdfast-generator)
$(BINARIES) &: $(SOURCES)
	$(MAKE) build
	touch $(BINARIES)

install: $(BINARIES) ## install below DESTDIR, with PREFIX=/usr; enables and starts nothing
	$(INSTALL) -D -m 0755 $(RELEASE)/holdfast $(DESTDIR)$(PREFIX)/bin/holdfast
	$(INSTALL) -D -m 0755 $(RELEASE)/holdfastd $(DESTDIR)$(LIBEXEC)/holdfastd
	$(INSTALL) -D -m 0755 $(RELEASE)/holdfast-generator \
	  $(DESTDIR)$(PREFIX)/lib/systemd/system-generators/holdfast-generator
	$(INSTALL) -d -m 0755 $(DESTDIR)$(PREFIX)/lib/systemd/system
	@for unit in $(UNITS); do \
	  to=$(DESTDIR)$(PREFIX)/lib/systemd/system/$${unit##*/}; \
	  echo "install $$to"; \
	  sed -e 's,/usr/libexec/holdfast/,$(LIBEXEC)/,; s,/usr/bin/holdfast,$(PREFIX)/bin/holdfast,' "$$unit" >"$$to"; \
	  chmod 0644 "$$to"; \
	done
	$(INSTALL) -D -m 0644 dbus/io.holdfast.Agent1.conf $(DESTDIR)$(PREFIX)/share/dbus-1/system.d/io.holdfast.Agent1.conf
	$(INSTALL) -D -m 0644 dbus/io.holdfast.Agent1.service $(DESTDIR)$(PREFIX)/share/dbus-1/system-services/io.holdfast.Agent1.service
	$(INSTALL) -D -m 0644 dbus/io.holdfast.Agent1.xml $(DESTDIR)$(PREFIX)/share/dbus-1/interfaces/io.holdfast.Agent1.xml
	$(INSTALL) -D -m 0644 polkit/io.holdfast.agent1.policy $(DESTDIR)$(PREFIX)/share/polkit-1/actions/io.holdfast.agent1.policy
	$(INSTALL) -D -m 0644 units/holdfast.catalog $(DESTDIR)$(PREFIX)/lib/systemd/catalog/holdfast.catalog
	$(INSTALL) -d -m 0755 $(DESTDIR)$(PREFIX)/share/man/man{1,5,7,8}
	$(RELEASE)/holdfast man $(DESTDIR)$(PREFIX)/share/man/man1
	$(INSTALL) -m 0644 docs/man/*.5 $(DESTDIR)$(PREFIX)/share/man/man5/
	$(INSTALL) -m 0644 docs/man/*.7 $(DESTDIR)$(PREFIX)/share/man/man7/
	$(INSTALL) -m 0644 docs/man/*.8 $(DESTDIR)$(PREFIX)/share/man/man8/
	chmod 0644 $(DESTDIR)$(PREFIX)/share/man/man1/holdfast*.1
	$(INSTALL) -d -m 0755 $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(ZSH_COMPLETIONS) \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(RELEASE)/holdfast completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/holdfast
	$(RELEASE)/holdfast completion zsh >$(DESTDIR)$(ZSH_COMPLETIONS)/_holdfast
	$(RELEASE)/holdfast completion fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/holdfast.fish
	chmod 0644 $(DESTDIR)$(PREFIX)/share/bash-completion/completions/holdfast $(DESTDIR)$(ZSH_COMPLETIONS)/_holdfast \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/holdfast.fish
	$(INSTALL) -d -m 0755 $(DESTDIR)$(SYSCONFDIR)/holdfast $(DESTDIR)$(SYSCONFDIR)/holdfast/modules
	@# The operator's settings are never overwritten.
	[[ -e $(DESTDIR)$(SYSCONFDIR)/holdfast/holdfast.toml ]] || \
	  $(INSTALL) -m 0644 packaging/holdfast.toml $(DESTDIR)$(SYSCONFDIR)/holdfast/holdfast.toml

clean: ## remove what was built
	$(CARGO) clean

.PHONY: setup-rust
setup-rust:
	@command -v $(CARGO) >/dev/null || { \
	  echo 'There is no cargo in PATH: install Rust 1.89 or newer (https://rustup.rs), then try again.' >&2; exit 1; }
	@command -v cc >/dev/null || { echo 'There is no C linker: run `make setup` as root, then try again.' >&2; exit 1; }
