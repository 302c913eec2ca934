# make install and uninstall. With PREFIX=/usr configuration and data are in /etc and /var, as a
# distribution's package has them; with any other prefix the configuration is in PREFIX/etc.

PREFIX ?= /usr/local
DESTDIR ?=
BINDIR ?= $(PREFIX)/bin
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
LOCALSTATEDIR ?= /var
RUNSTATEDIR ?= /run
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/keydb-server
INCLUDEDIR ?= $(PREFIX)/include/keydb
COMPLETIONSDIR ?= $(PREFIX)/share/bash-completion/completions
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
LOGROTATEDIR ?= $(SYSCONFDIR)/logrotate.d

# The files of pkg/ are written for PREFIX=/usr.
for_prefix = sed -e 's|/usr/bin/keydb-server|$(BINDIR)/keydb-server|g' \
             -e 's|/etc/keydb|$(SYSCONFDIR)/keydb|g' -e 's|/var/lib/keydb|$(LOCALSTATEDIR)/lib/keydb|g' \
             -e 's|/var/log/keydb|$(LOCALSTATEDIR)/log/keydb|g' \
             -e 's|/usr/share/doc/keydb-server|$(DOCDIR)|g'

# 1: the programs are there under Redis's names as well, by links.
REDIS_LINKS ?= 0

pages := $(BUILD)/pages
man_pages := $(patsubst pkg/man/%.in,%,$(wildcard pkg/man/*.in))
# What stands under a name of Redis, seen from its folder.
redis_links := $(foreach p,$(PROGRAMS:keydb-%=%),$(BINDIR)/redis-$p:keydb-$p \
               $(MANDIR)/man1/redis-$p.1:keydb-$p.1 $(COMPLETIONSDIR)/redis-$p:keydb-$p)
docs := $(wildcard README.md COPYING)
units := keydb-server.service keydb-server@.service

.PHONY: pages install-programs install-headers install-pages install-redis-links install-conf install-service
install: install-programs install-headers install-pages install-conf install-service $(if $(filter 1,$(REDIS_LINKS)),install-redis-links)
	@echo "Installed under $(DESTDIR)$(PREFIX)."
	@[ -n "$(DESTDIR)" ] || { echo "To run it as a service, as root:"; \
	  echo "  systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload"; \
	  echo "  chown keydb:keydb $(SYSCONFDIR)/keydb/keydb.conf && systemctl enable --now keydb-server"; }

install-programs: all
	$(call say,INSTALL,$(DESTDIR)$(BINDIR): $(PROGRAMS))
	$(Q)$(INSTALL) -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(DOCDIR)
	$(Q)for p in $(PROGRAMS); do $(INSTALL) -m 755 $(BUILD)/bin/$$p $(DESTDIR)$(BINDIR)/ || exit 1; done
	$(Q)[ -z "$(docs)" ] || $(INSTALL) -m 644 $(docs) $(DESTDIR)$(DOCDIR)/

# Made by the programs that were built: see pkg/make-pages.
pages: all
	$(call say,PAGES,$(pages))
	$(Q)pkg/make-pages $(BUILD)/bin $(pages)

install-pages: pages
	$(call say,INSTALL,$(DESTDIR)$(MANDIR): $(man_pages))
	$(Q)$(INSTALL) -d $(DESTDIR)$(COMPLETIONSDIR)
	$(Q)for m in $(man_pages); do d=$(DESTDIR)$(MANDIR)/man$${m##*.}; $(INSTALL) -d $$d && \
	  $(for_prefix) $(pages)/$$m >$$d/$$m || exit 1; done
	$(Q)for p in $(PROGRAMS); do \
	  $(INSTALL) -m 644 $(pages)/keydb.bash $(DESTDIR)$(COMPLETIONSDIR)/$$p || exit 1; done

# What is there under such a name, and is not our link, is somebody else's: nothing is linked then.
install-redis-links: install-programs install-pages
	$(call say,INSTALL,$(DESTDIR)$(BINDIR): $(PROGRAMS:keydb-%=redis-%))
	$(Q)for l in $(redis_links); do at=$(DESTDIR)$${l%%:*}; \
	  if [ -e $$at ] || [ -L $$at ]; then [ "$$(readlink $$at)" = $${l#*:} ] || \
	    { echo "$$at is there and not ours: there are no links of Redis's names" >&2; exit 1; }; fi; done
	$(Q)for l in $(redis_links); do ln -sf $${l#*:} $(DESTDIR)$${l%%:*} || exit 1; done

# What authors of modules compile with.
install-headers: $(module_header)
	$(call say,INSTALL,$(DESTDIR)$(INCLUDEDIR))
	$(Q)$(INSTALL) -d $(DESTDIR)$(INCLUDEDIR)
	$(Q)$(INSTALL) -m 644 $(module_header) $(DESTDIR)$(INCLUDEDIR)/

# A configuration that is there is its owner's; the new one is laid beside it.
install-conf:
	$(call say,INSTALL,$(DESTDIR)$(SYSCONFDIR)/keydb)
	$(Q)$(INSTALL) -d $(DESTDIR)$(SYSCONFDIR)/keydb
	$(Q)[ ! -f keydb.conf ] || { conf=$(DESTDIR)$(SYSCONFDIR)/keydb/keydb.conf; \
	  [ ! -e $$conf ] || conf=$$conf.new; \
	  pkg/package-conf $(LOCALSTATEDIR)/lib/keydb $(LOCALSTATEDIR)/log/keydb $(RUNSTATEDIR)/keydb \
	    <keydb.conf >$$conf && chmod 640 $$conf; }

install-service:
	$(call say,INSTALL,$(DESTDIR)$(UNITDIR): $(units))
	$(Q)$(INSTALL) -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(SYSUSERSDIR) $(DESTDIR)$(TMPFILESDIR) \
	  $(DESTDIR)$(LOGROTATEDIR)
	$(Q)for u in $(units); do $(for_prefix) pkg/$$u >$(DESTDIR)$(UNITDIR)/$$u || exit 1; done
	$(Q)$(for_prefix) pkg/keydb-server.sysusers >$(DESTDIR)$(SYSUSERSDIR)/keydb-server.conf
	$(Q)$(for_prefix) pkg/keydb-server.tmpfiles >$(DESTDIR)$(TMPFILESDIR)/keydb-server.conf
	$(Q)$(for_prefix) pkg/keydb-server.logrotate >$(DESTDIR)$(LOGROTATEDIR)/keydb-server

# Configuration and data stay.
uninstall:
	$(Q)for p in $(PROGRAMS); do rm -f $(DESTDIR)$(BINDIR)/$$p; done
	$(Q)for u in $(units); do rm -f $(DESTDIR)$(UNITDIR)/$$u; done
	$(Q)for h in $(notdir $(module_header)); do rm -f $(DESTDIR)$(INCLUDEDIR)/$$h; done
	$(Q)rm -f $(DESTDIR)$(SYSUSERSDIR)/keydb-server.conf $(DESTDIR)$(TMPFILESDIR)/keydb-server.conf \
	  $(DESTDIR)$(LOGROTATEDIR)/keydb-server
	$(Q)for f in $(notdir $(docs)); do rm -f $(DESTDIR)$(DOCDIR)/$$f; done
	$(Q)for l in $(redis_links); do at=$(DESTDIR)$${l%%:*}; \
	  [ "$$(readlink $$at)" != $${l#*:} ] || rm -f $$at; done
	$(Q)for m in $(man_pages); do rm -f $(DESTDIR)$(MANDIR)/man$${m##*.}/$${m##*/}; done
	$(Q)for p in $(PROGRAMS); do rm -f $(DESTDIR)$(COMPLETIONSDIR)/$$p; done
	@rmdir $(DESTDIR)$(DOCDIR) $(DESTDIR)$(INCLUDEDIR) 2>/dev/null || true

.PHONY: deb
deb: ; +@sh pkg/build-deb
