/* INFO's sections that tell about the server as a whole: server, memory, persistence, stats,
 * replication, cpu, modules, commandstats, errorstats, latencystats, cluster, keyspace, keydb.
 * Clients' and threads' fields are net/'s. State: what is drawn at boot (run id, start time) is
 * immutable; rates are atomic. */
#ifndef SERVER_SECTIONS_H
#define SERVER_SECTIONS_H

/* Registers the sections in Redis's order (an empty "clients" section in its place, for net/ to
 * fill), and the cron job that samples rates. Boot, before net_setup(), after the configuration is
 * loaded. */
void sections_setup(void);
/* Notes that the server is up: the memory in use so far is not data. Boot, last. */
void sections_started(void);

#endif
