/* Access control: users, what each may do, and the check of a call against it.
 *
 * A user has selectors; the first (the root) is what rules outside of brackets change. A call is
 * allowed when one selector allows all of it: the command, each key with the access that the
 * command needs of it, each channel. The user `default` always is; whoever connects is that one at
 * first.
 *
 * State: world. Users change while the world stands still; a session's thread, awake, reads its
 * user without a lock. No session ever points to a user that is gone. The log (acl_log.h) is behind
 * a leaf lock. */
#ifndef ENGINE_ACL_H
#define ENGINE_ACL_H

#include "base/option.h"
#include "engine/call.h"

struct acl_selector; /* acl_priv.h */

enum acl_sanitize { ACL_SANITIZE_YES, ACL_SANITIZE_SKIP };

struct acl_user {
    bool unlimited; /* the root selector allows everything: nothing is to be checked */
    bool enabled;   /* may authenticate; says nothing about sessions that have */
    bool nopass;    /* takes any password */
    enum acl_sanitize sanitize;
    char *name;                      /* NUL-terminated, owned */
    char (*passwords)[64];           /* SHA-256 in hexadecimal digits, in order of addition */
    int password_count;              /* none and no nopass: nobody gets in */
    struct acl_selector **selectors; /* at least the root */
    int selector_count;
};

enum acl_verdict {
    ACL_ALLOWED,
    ACL_DENIED_COMMAND,
    ACL_DENIED_KEY,
    ACL_DENIED_AUTH,
    ACL_DENIED_CHANNEL,
};

/* Where a call was made that was denied, for the log. */
enum acl_context { ACL_CONTEXT_TOPLEVEL, ACL_CONTEXT_MULTI, ACL_CONTEXT_LUA, ACL_CONTEXT_MODULE };

/* ---- the check. Thread: awake (or world). ---- */

/* What the user may not do of this request, ACL_ALLOWED if nothing. *at is the argument that is
 * denied (0 for the command). */
enum acl_verdict acl_check(const struct acl_user *user, const struct command *cmd,
                           const struct slice *argv, int argc, int *at) MUST_CHECK;
/* Checks a call against its session's user. When denied, counts and logs it, and appends the error
 * that the client is told ("NOPERM ..."). Nearly free for unlimited users. */
enum acl_verdict acl_check_call(const struct call *c, enum acl_context context,
                                struct buf *error) MUST_CHECK;
/* The same for a call of a transaction that is about to run: NULL, or the error. */
const char *acl_check_queued(const struct call *c) MUST_CHECK;
/* True when nothing need be checked for the session: its user may do everything, or it is the
 * server's own without a user. Hot. */
static inline bool acl_is_unlimited(const struct session *s)
{
    return s->acl->unlimited;
}
/* True when the caller may run this call's command and read every key there is (SORT's BY and GET
 * patterns name keys that no extractor can tell). */
bool acl_may_read_all_keys(const struct call *c);
/* What to say of a denial. verbose: names user and object (DRYRUN). */
void acl_append_denial(struct buf *out, enum acl_verdict verdict, const struct acl_user *user,
                       const struct command *cmd, struct slice object, bool verbose);

/* ---- users ---- */

/* The user `default`. Never moves. */
struct acl_user *acl_default_user(void);
/* Makes `s` a session of the default user, authenticated if that takes no password. */
void acl_start_session(struct session *s);
/* Makes `s` a session of a user that may do everything, is on no list, and never changes. */
void acl_start_internal(struct session *s);
/* Whether it is still that one. */
bool acl_is_internal(const struct session *s);
/* The user of that name, NULL when there is none. Awake. */
const struct acl_user *acl_user_find(struct slice name);
/* Users in order of their names. Awake. */
int acl_user_count(void);
const struct acl_user *acl_user_at(int index);
/* True when the name has no blanks or NULs. */
bool acl_name_is_valid(struct slice name);
/* ACL SETUSER: applies rules to a user, which is made if there is none; all of them or none. False
 * with `error` appended ("ERR ..."). Clients that listen to what the user may hear no more are
 * closed; `caller` (may be NULL) after its reply. */
bool acl_set_user(struct slice name, const struct slice *rules, int count,
                  const struct session *caller, struct buf *error) MUST_CHECK REQUIRES(gil);
/* ACL DELUSER: false when there is no such user (or it is the default one). Its clients are closed.
 */
bool acl_delete_user(struct slice name, const struct session *caller) REQUIRES(gil);
/* The user takes this password only, or (empty) any. World, or boot. */
void acl_set_password(struct acl_user *user, struct slice password);
/* Commands have come or gone: what the users' rules say of categories and names holds for those
 * that there are now. World, or boot. */
void acl_refresh_commands(void);
/* Frees all users but the default one, which is as at the start. No session is left. */
void acl_teardown(void);

/* ---- users on no list (acl_unlisted.c): those of modules. Nobody finds them by name, and no file
 * has them. Their list is changed by who holds the keyspace lock in exclusive mode, or the world.
 * ---- */

/* One that may nothing. */
struct acl_user *acl_unlisted_create(struct slice name);
/* One that may do what another may. */
struct acl_user *acl_unlisted_copy(const struct acl_user *user);
/* Frees it and nulls the caller's pointer. No client is this user's any more; calls within calls
 * that are become the default user's (acl_take_nested, whose lock it needs). */
void acl_unlisted_destroy(struct acl_user **user);
/* Applies rules to it, as acl_set_user: all of them or none. No session is this user, since their
 * threads look at theirs while they parse. */
bool acl_unlisted_set(struct acl_user *user, const struct slice *rules, int count,
                      struct buf *error) MUST_CHECK;
/* Closes the clients that are a user's, and makes them nobody's; `caller` (may be NULL) after its
 * reply. */
void acl_close_clients(const struct acl_user *user, const struct session *caller) REQUIRES(gil);
/* Makes the clients that are a user's another's; nobody is told. */
void acl_move_clients(const struct acl_user *user, const struct acl_user *now) REQUIRES(gil);
/* A session that is no client's, while a call within another runs with the rights of some user: it
 * follows what becomes of that one, as clients do, and outlives it as a session of the default
 * user's. State: keyspace. */
struct acl_nested {
    struct session *session;
    struct acl_nested *outer;
};
void acl_begin_nested(struct acl_nested *n);
void acl_end_nested(struct acl_nested *n);
/* The user is about to go. With the keyspace lock in exclusive mode, or in the world. */
void acl_take_nested(const struct acl_user *user);
/* Calls `visit` for all there are. World. */
void acl_unlisted_each(void (*visit)(struct acl_user *user));

/* Whether a user, on a list or not, has access to a key in the way that these flags (enum key_flag)
 * ask for, by any of its selectors; to a channel, or pattern of channels. Awake. */
bool acl_may_touch(const struct acl_user *user, struct slice key, uint32_t flags);
bool acl_may_listen(const struct acl_user *user, struct slice name, bool is_pattern);

/* ---- users as text ---- */

/* The user as rules, in the form that acl_set_user and files take: "on nopass ~* &* +@all". */
void acl_append_user(struct buf *out, const struct acl_user *user);
/* Parts of a selector (index < selector_count) as ACL GETUSER shows them. */
void acl_append_commands(struct buf *out, const struct acl_user *user, int selector);
void acl_append_keys(struct buf *out, const struct acl_user *user, int selector);
void acl_append_channels(struct buf *out, const struct acl_user *user, int selector);

/* ---- files (acl_file.c) ---- */

/* The path of `aclfile`, "" without one. */
const char *acl_file_path(void);
/* Reads the file: all of it, or nothing changes and `error` has all faults appended ("WARNING: ..."
 * at its end). Clients of users that are gone are closed. */
bool acl_load_file(const struct session *caller, struct buf *error) MUST_CHECK REQUIRES(gil);
/* Writes all users into the file: as a whole (temporary file, fsync, rename) or not at all. False
 * is logged with its reason. */
bool acl_save_file(void) MUST_CHECK;
/* After the configuration is read and its modules are loaded, whose commands rules may name: users
 * of its `user` lines, or of the aclfile. False with the reason on standard error: the server must
 * not start. Boot; the world, if other threads are there. */
bool acl_load_at_start(void) MUST_CHECK;

/* ---- who connects (net/ says how) ---- */

struct acl_clients {
    /* Calls `visit` with every client's session until it returns false. */
    void (*each)(bool (*visit)(struct session *s, void *context), void *context);
    /* Closes a client; after its reply if it is the caller's. */
    void (*close)(struct session *s, bool is_caller);
    /* Calls `visit` for every channel and pattern it listens to, until that returns false; true
     * when none did. */
    bool (*each_channel)(struct session *s,
                         bool (*visit)(struct slice name, bool is_pattern, void *context),
                         void *context);
    /* Appends the client's line of CLIENT LIST without its newline. Own thread. */
    void (*describe)(const struct session *s, const struct command *running, struct buf *out);
};
/* Boot. Without them there are no clients. */
void acl_set_clients(const struct acl_clients *clients);
const struct acl_clients *acl_clients(void);

/* acl-pubsub-default; aclfile, user. */
extern const struct option acl_rule_options[];
extern const struct option acl_file_options[];

#endif
