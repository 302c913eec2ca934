/* What the files of peer_links.h share: a link, and the steps that its thread takes. State: see
 * peer_links.h. */
#ifndef ACTIVE_PEER_LINKS_PRIV_H
#define ACTIVE_PEER_LINKS_PRIV_H

#include "active/peer_links.h"
#include "active/receiver.h"
#include "active/sources.h"
#include "base/buf.h"
#include "keyspace/lock.h"
#include "net/upstream.h"
#include "repl/follow_link.h"

#include <pthread.h>
#include <stdatomic.h>

/* Bytes of a host's name, with its NUL. */
#define HOST_MAX 256
/* Between two words about how far we are, and the longest wait for the next look. */
#define ACK_MS 1000
#define LOOK_MS 250

enum link_state { LINK_CONNECT, LINK_HANDSHAKE, LINK_SYNC, LINK_CONNECTED, LINK_ENDED };

struct peer_link {
    struct follow_link f; /* first: `interrupted` gets it */
    pthread_t thread;
    char host[HOST_MAX];
    int port;
    char failed[sizeof(((struct follow_link *)NULL)->why)]; /* why there is none, as was logged */
    int number;                                             /* among all; its thread's name */
    _Atomic bool stop, cut, link_stop;
    _Atomic bool told_due; /* the peer is to be told what is requested */
    _Atomic enum link_state state;
    _Atomic bool met; /* its peer has told, since the link is wanted, what it had before */
    _Atomic int64_t heard_ms, down_ms; /* 0: never */
    _Atomic uint64_t units;            /* that have come by it */
    struct buf in;                     /* received; [0, done) is taken */
    size_t done;
    bool waits;       /* what is next in there waits for the end of a full sync, or a cause */
    int64_t cause_ms; /* since when it waits for a cause; 0: it does not */
    uint64_t *late;   /* by origin: up to there its writes are not waited for any more */
    uint32_t late_count;
    bool gets_all;              /* the peer has answered that a whole data set comes */
    bool set_comes;             /* it is next */
    struct version_vector *had; /* our positions when the peer was asked */
    bool wrong;            /* what it sent could not be taken: another try will not help soon */
    int64_t acked_ms;      /* when it was told last */
    struct upstream facts; /* written with the GIL in shared mode, read by the world */
    int64_t begun_ms;      /* the same */
    struct receiver take;  /* keyspace */
    struct source_told told;
};

/* The one of that number, if it is there and wanted; NULL. [0, PEER_LINKS_MAX). The GIL is held. */
const struct peer_link *peer_link_at(int number);
/* The link is not wanted any more, or is to be made anew. */
bool peer_link_is_interrupted(const struct follow_link *f);
/* Waits for bytes of the peer (unless `fd` is -1) or to be woken. */
void peer_link_wait(struct peer_link *l, int fd, int ms);
/* An exclusive hold of the keyspace; false, and nothing is held: the link is interrupted, or the
 * server is about to end (what is here stays as it was when that was decided). */
bool peer_link_begin_hold(struct peer_link *l) MUST_CHECK TRY_ACQUIRE(true, keyspace_lock);
void peer_link_end_hold(void) RELEASE(keyspace_lock);
/* The link brings a data set, whose origins are known now: sources_prefer. */
void peer_link_prefer(const struct peer_link *l) REQUIRES(keyspace_lock);
/* What has come since is in l->in; false: the link is broken. */
bool peer_link_receive(struct peer_link *l) MUST_CHECK;
/* What is due by the clock: false when the peer has been silent for too long, or cannot be told how
 * far we are. */
bool peer_link_keep(struct peer_link *l) MUST_CHECK;

/* The process is about to end, and waits for the threads of all links. */
bool peer_links_are_ending(void);

/* A whole data set comes by the link, and is merged with what is here. False (logged): the link is
 * to be closed. What has begun to be merged is merged to its end, whatever becomes of the link. */
bool peer_link_sync(struct peer_link *l) MUST_CHECK;
/* INFO's figures of it: whether one comes or is merged, and how many keys. Any thread. */
struct peer_sync_facts {
    bool comes, merges;
    uint64_t keys, merged;
};
struct peer_sync_facts peer_sync_facts(void);

#endif
