/* The access clock of entries: 24 bits that mean LRU (seconds, wrapping after 194 days) or LFU (16
 * bits of minutes and a logarithmic counter of 8 bits), by the maxmemory policy; ENTRY_CLOCK_KIND
 * is set where they mean LFU. So a change of policy needs no walk over all keys: a clock of the
 * other kind is understood until the key is used next. One that counted uses says when the last
 * was; one of seconds stands for the counter of a new key, made when the policy changed. State: the
 * mode is world state; the clocks are atomic. */
#ifndef KEYSPACE_ACCESS_H
#define KEYSPACE_ACCESS_H

#include "base/option.h"
#include "value/entry.h"

/* maxmemory-policy: what the clocks count, and whom eviction takes (evict.h). */
enum access_policy {
    POLICY_VOLATILE_LRU,
    POLICY_VOLATILE_LFU,
    POLICY_VOLATILE_RANDOM,
    POLICY_VOLATILE_TTL,
    POLICY_ALLKEYS_LRU,
    POLICY_ALLKEYS_LFU,
    POLICY_ALLKEYS_RANDOM,
    POLICY_NOEVICTION,
};
/* The one that is set. World. */
enum access_policy access_policy(void);
/* True while the policy counts frequencies (allkeys-lfu, volatile-lfu). World; hot, hence a
 * variable. */
extern bool access_lfu;
bool access_is_lfu(void);
/* True while the policy goes by the time of the last use (allkeys-lru, volatile-lru). World. */
bool access_is_lru(void);
/* Boot, after the configuration is loaded; when the policy changes. World. */
void access_setup(void);
/* The clock of a new entry. */
uint32_t access_initial(int64_t now_ms);
/* The LRU clock of a time. */
static inline uint32_t access_lru_clock(int64_t now_ms)
{
    return (uint32_t)(now_ms / 1000) & ENTRY_CLOCK_MASK;
}
/* access_touch while the policy is LFU. */
void access_touch_lfu(struct entry *e, int64_t now_ms);
/* Marks an access; one relaxed store, only when the value changes. Shared mode suffices. */
static inline void access_touch(struct entry *e, int64_t now_ms)
{
    if (unlikely(access_lfu)) {
        access_touch_lfu(e, now_ms);
    } else {
        entry_set_clock(e, access_lru_clock(now_ms));
    }
}
/* Milliseconds since the last access (LRU). From a clock of uses: since the end of its minute. */
int64_t access_idle_ms(const struct entry *e, int64_t now_ms);
/* The decayed counter (LFU). From a clock of seconds: a new key's, as old as the policy. */
unsigned access_frequency(const struct entry *e, int64_t now_ms);
/* Sets idle time or counter (RESTORE IDLETIME/FREQ). */
void access_set_idle_ms(struct entry *e, int64_t idle_ms, int64_t now_ms);
void access_set_frequency(struct entry *e, unsigned counter, int64_t now_ms);

/* maxmemory-policy, lfu-log-factor, lfu-decay-time. */
extern const struct option access_options[];

#endif
