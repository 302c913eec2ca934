/* Passwords: their hashes, `requirepass`, and who may come in without one. State: world. */
#ifndef ENGINE_AUTH_H
#define ENGINE_AUTH_H

#include "base/option.h"
#include "engine/session.h"

/* A password is kept as the hexadecimal digits of its SHA-256. */
#define AUTH_HASH_CHARS 64

/* True when clients must authenticate first: the default user is disabled, or has a password. Hot.
 */
bool auth_required(void);
/* True when the default user takes any password. */
bool auth_default_takes_any(void);
/* Checks user and password, in a time that tells nothing of either, and makes the session that
 * user's; false for wrong ones and users that are disabled. */
bool auth_check(struct session *s, struct slice user, struct slice password) MUST_CHECK;
/* Whether a session's change of user calls module code, now: the keyspace lock is needed in
 * exclusive mode, or not at all (it is taken then). */
bool auth_wants_exclusive(const struct session *s);

/* Whom AUTH asks before it looks at passwords: modules. With the keyspace lock in exclusive mode or
 * not at all. It either leaves the matter to the passwords, has made the session some user's
 * (auth_become), denies, with an error of its own ("ERR ...") or none, or has the call wait
 * (call_block), in exclusive mode only: it is asked again when the call is tried. */
enum auth_answer { AUTH_LEFT, AUTH_GRANTED, AUTH_DENIED, AUTH_WAITS };
struct call;
typedef enum auth_answer (*auth_ask_fn)(struct call *c, struct slice user, struct slice password,
                                        struct buf *error);
/* Whether somebody is asked: commands that authenticate run in exclusive mode then. Any thread. */
bool auth_has_asker(void);
/* The answer; AUTH_LEFT where nobody is asked. */
enum auth_answer auth_ask(struct call *c, struct slice user, struct slice password,
                          struct buf *error);
/* Any thread; NULL: nobody. */
void auth_set_asker(auth_ask_fn ask);

/* The session is about to become another user's, or to end: who has asked for it (user_is_watched)
 * is told, once. Its thread, or the world; with the keyspace lock in exclusive mode or not at all.
 */
void auth_note_change(struct session *s);
/* Boot: who is told. NULL: nobody. */
void auth_set_watcher(void (*changes)(struct session *s));
/* Makes the session that user's, authenticated, whatever the password; auth_note_change first. Its
 * thread, awake. */
void auth_become(struct session *s, const struct acl_user *user);
/* The hash of a password. */
void auth_hash(struct slice password, char hash[AUTH_HASH_CHARS]);
/* Overwrites and frees a buffer that held a password. */
void auth_forget(struct buf *secret);
/* Gives a user the password of requirepass, or (none) takes any from it. */
void auth_apply_requirepass(struct acl_user *user);
/* The default user has changed. World, or boot. */
void auth_publish(void);
/* requirepass. */
extern const struct option auth_options[];

#endif
