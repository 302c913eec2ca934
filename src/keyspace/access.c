/* See access.h. LFU as described in Redis's documentation of maxmemory-policy: a counter that is
 * raised with probability 1/((counter - 5) * factor + 1) and falls by one every lfu-decay-time
 * minutes; new keys begin at 5. */
#include "keyspace/access.h"

#include "base/clock.h"
#include "base/rand.h"

#define LFU_INITIAL 5
#define LFU_MAX 255
#define LRU_WRAP (ENTRY_CLOCK_MASK + 1)
/* Threads read the time when they wake: a clock that is this much ahead of the reader's time was
 * set a moment ago by another thread, and is not as old as the wrap makes it. */
#define AHEAD_S 3600
#define AHEAD_MINUTES 60

#define MINUTE_MS 60000

static struct {
    int policy;
    int64_t lfu_log_factor, lfu_decay_minutes;
    int64_t lfu_since_ms; /* when uses began to be counted */
} settings;

bool access_lfu;

enum access_policy access_policy(void)
{
    return (enum access_policy)settings.policy;
}

bool access_is_lfu(void)
{
    return access_lfu;
}

bool access_is_lru(void)
{
    return settings.policy == POLICY_ALLKEYS_LRU || settings.policy == POLICY_VOLATILE_LRU;
}

static bool apply_policy(const struct option *option, const char **error)
{
    (void)option;
    (void)error;
    access_setup();
    return true;
}

void access_setup(void)
{
    bool lfu = settings.policy == POLICY_ALLKEYS_LFU || settings.policy == POLICY_VOLATILE_LFU;
    if (lfu && !access_lfu) {
        settings.lfu_since_ms = clock_wall_ms();
    }
    access_lfu = lfu;
}

static inline uint32_t lfu_minutes(int64_t now_ms)
{
    return (uint32_t)(now_ms / MINUTE_MS) & 0xffff;
}

/* Minutes since those of an LFU clock. */
static inline uint32_t lfu_elapsed(uint32_t clock, int64_t now_ms)
{
    uint32_t elapsed = (lfu_minutes(now_ms) - (clock >> 8)) & 0xffff;
    return elapsed > 0xffff - AHEAD_MINUTES ? 0 : elapsed;
}

static inline uint32_t lfu_clock(unsigned counter, int64_t now_ms)
{
    return lfu_minutes(now_ms) << 8 | counter | ENTRY_CLOCK_KIND;
}

uint32_t access_initial(int64_t now_ms)
{
    return access_is_lfu() ? lfu_clock(LFU_INITIAL, now_ms) : access_lru_clock(now_ms);
}

unsigned access_frequency(const struct entry *e, int64_t now_ms)
{
    uint32_t clock = entry_clock(e);
    bool counts = clock & ENTRY_CLOCK_KIND;
    unsigned counter = counts ? clock & 0xff : LFU_INITIAL;
    if (settings.lfu_decay_minutes > 0) {
        int64_t elapsed = counts ? (int64_t)lfu_elapsed(clock & ENTRY_CLOCK_MASK, now_ms)
                                 : (now_ms - settings.lfu_since_ms) / MINUTE_MS;
        int64_t steps = elapsed / settings.lfu_decay_minutes;
        counter = steps > (int64_t)counter ? 0 : steps > 0 ? counter - (unsigned)steps : counter;
    }
    return counter;
}

static unsigned raise_counter(unsigned counter)
{
    if (counter >= LFU_MAX) {
        return LFU_MAX;
    }
    uint64_t above = counter > LFU_INITIAL ? counter - LFU_INITIAL : 0;
    uint64_t odds = above * (uint64_t)settings.lfu_log_factor + 1;
    return counter + (rand_below(odds) == 0);
}

void access_touch_lfu(struct entry *e, int64_t now_ms)
{
    entry_set_clock(e, lfu_clock(raise_counter(access_frequency(e, now_ms)), now_ms));
}

int64_t access_idle_ms(const struct entry *e, int64_t now_ms)
{
    uint32_t clock = entry_clock(e);
    if (clock & ENTRY_CLOCK_KIND) {
        int64_t minutes = lfu_elapsed(clock & ENTRY_CLOCK_MASK, now_ms);
        return minutes == 0 ? 0 : (minutes - 1) * MINUTE_MS + now_ms % MINUTE_MS;
    }
    uint32_t elapsed = (access_lru_clock(now_ms) - clock) & ENTRY_CLOCK_MASK;
    return elapsed > ENTRY_CLOCK_MASK - AHEAD_S ? 0 : (int64_t)elapsed * 1000;
}

void access_set_idle_ms(struct entry *e, int64_t idle_ms, int64_t now_ms)
{
    entry_set_clock(e, (access_lru_clock(now_ms) + LRU_WRAP - (uint32_t)(idle_ms / 1000)) &
                           ENTRY_CLOCK_MASK);
}

void access_set_frequency(struct entry *e, unsigned counter, int64_t now_ms)
{
    entry_set_clock(e, lfu_clock(counter > LFU_MAX ? LFU_MAX : counter, now_ms));
}

static const struct option_enum policies[] = {
    {"volatile-lru", POLICY_VOLATILE_LRU},
    {"volatile-lfu", POLICY_VOLATILE_LFU},
    {"volatile-random", POLICY_VOLATILE_RANDOM},
    {"volatile-ttl", POLICY_VOLATILE_TTL},
    {"allkeys-lru", POLICY_ALLKEYS_LRU},
    {"allkeys-lfu", POLICY_ALLKEYS_LFU},
    {"allkeys-random", POLICY_ALLKEYS_RANDOM},
    {"noeviction", POLICY_NOEVICTION},
    {NULL, 0},
};

const struct option access_options[] = {
    {.name = "maxmemory-policy",
     .type = OPTION_ENUM,
     .target = &settings.policy,
     .initial = "noeviction",
     .enum_names = policies,
     .apply = apply_policy},
    {.name = "lfu-log-factor",
     .type = OPTION_INT,
     .target = &settings.lfu_log_factor,
     .initial = "10",
     .min = 0,
     .max = INT32_MAX},
    {.name = "lfu-decay-time",
     .type = OPTION_INT,
     .target = &settings.lfu_decay_minutes,
     .initial = "1",
     .min = 0,
     .max = INT32_MAX},
    {.name = NULL},
};
