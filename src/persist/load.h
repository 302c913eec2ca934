/* Loading the data set when the server starts: THE place where it is decided what is loaded, and
 * what those who load tell the rest of the server meanwhile.
 *
 * A table of sources in load.c; the first that is wanted is the one. A thread of its own loads it,
 * while the server listens and answers -LOADING to what has not CMD_LOADING (engine/gate.h). For a
 * small one the start waits a second before anything is accepted: it is there by then, unless a log
 * has a script that takes long.
 *
 *   NOTHING --load_begin--> LOADING --fine--> DONE
 *                              |------fault, or the end was wanted--> BROKEN
 *
 * A source's load runs with the GIL held in shared mode and takes the keyspace lock for short holds
 * of its own. At least every few milliseconds it calls load_step, holding no lock. State: figures
 * are atomic. */
#ifndef PERSIST_LOAD_H
#define PERSIST_LOAD_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/option.h"

#include <stdbool.h>
#include <stdint.h>

enum load_result {
    LOAD_FINE,
    LOAD_BAD,     /* logged, with the offset: the server must not go on with this */
    LOAD_STOPPED, /* load_step has said so */
};

/* A form in which the data set can be on disk. */
struct load_source {
    const char *name;        /* as the log says it: "the RDB file" */
    bool (*is_wanted)(void); /* by the configuration and what is there; the first that is wins */
    uint64_t (*bytes)(void); /* to be read in all, for progress and the choice of the thread */
    enum load_result (*load)(void); /* adds it to the databases, which are empty */
};

/* What the server wants to be told; called on the thread that loads. */
struct load_listener {
    void (*progress)(unsigned percent); /* about once a second while a larger set is loaded */
    bool (*loaded)(void);     /* before clients may use it, the GIL held in shared mode; false: as
                                 a fault. Of load_begin, where it goes on behind. */
    void (*ended)(bool fine); /* it is all there, or the server must end */
};

enum load_begun {
    LOAD_BEGUN_DONE,   /* everything is there; the listener is not called */
    LOAD_BEGUN_BAD,    /* logged */
    LOAD_BEGUN_BEHIND, /* goes on in a thread; the listener hears of the end */
};
/* Boot, main thread, no lock held; clients may be accepted only after it has returned. */
enum load_begun load_begin(const struct load_listener *listener) MUST_CHECK;
/* Has the thread end early if it is still loading, and waits for it. Main thread, asleep (without
 * the GIL). */
void load_stop(void);
/* False while loading, and for ever after a fault: what is in memory must not be saved. */
bool load_is_complete(void);
/* Loads once more, on the calling thread, while the server serves. The caller holds the GIL in
 * shared mode. Not while loading. */
enum load_again {
    /* With -LOADING for most commands. The source empties the databases first, and again when it
     * fails, which leaves nothing complete (load_is_complete). */
    LOAD_OVER,
    /* The same, but the source loads aside, and the databases stay as they are until it ends well:
     * a failure changes nothing. */
    LOAD_ASIDE,
    /* The same while what is there is complete and goes on being served: most commands run. */
    LOAD_ASIDE_SERVING,
};
enum load_result load_again(const struct load_source *source, enum load_again how,
                            const struct load_listener *listener) MUST_CHECK;
/* After such a failure: what is there, nothing, is what is wanted. World. */
void load_accept(void);
/* Appends INFO's lines: the first ones of its section, and those that are there while loading. */
void load_write_info(struct buf *out);
void load_write_info_progress(struct buf *out);
/* INFO's figures of the last load, which a source keeps: keys so far, expired ones left out. */
void load_note_keys(uint64_t loaded, uint64_t expired);
/* The memory that its writer had in use, which an RDB file tells. */
void load_note_used_memory(uint64_t bytes);

/* ---- for sources ---- */

/* `bytes_done` bytes of the source have been read, which is a log of commands or an RDB file. False
 * when the loading is to end now (LOAD_STOPPED). Lets others have the world meanwhile. Also right
 * where nothing but the calling thread runs (boot, DEBUG RELOAD). */
bool load_step(uint64_t bytes_done, bool is_log) MUST_CHECK;
/* Waits as key-load-delay wants after a key; one test of a variable. */
void load_delay(void);
extern int64_t load_key_delay;
static inline void load_key_done(void)
{
    if (unlikely(load_key_delay != 0)) {
        load_delay();
    }
}

/* key-load-delay, loading-process-events-interval-bytes. */
extern const struct option load_options[];

#endif
