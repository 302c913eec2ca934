/* See recent.h. Each text has one place, by its hash; a later one takes it over. */
#include "script/recent.h"

#include "base/hash.h"
#include "base/mem.h"
#include "script/api.h"

#include <string.h>

static struct recent {
    char *text; /* NULL: none */
    size_t len;
    char sha[RECENT_SHA_CHARS];
} texts[RECENT_TEXTS];

void recent_sha1(struct slice text, char sha[RECENT_SHA_CHARS])
{
    if (text.len > RECENT_TEXT_MAX_BYTES) {
        api_sha1_hex(text.ptr, text.len, sha);
        return;
    }
    struct recent *r = &texts[hash_bytes(text.ptr, text.len) % RECENT_TEXTS];
    if (!r->text || !slice_equal(slice_of(r->text, r->len), text)) {
        api_sha1_hex(text.ptr, text.len, r->sha);
        mem_free(r->text);
        r->text = mem_dup(text.ptr, text.len);
        r->len = text.len;
    }
    memcpy(sha, r->sha, RECENT_SHA_CHARS);
}

void recent_forget(void)
{
    for (int i = 0; i < RECENT_TEXTS; i++) {
        mem_free(texts[i].text);
        texts[i].text = NULL;
    }
}
