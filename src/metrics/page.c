/* See page.h. */
#include "metrics/page.h"

#include "base/buf.h"

#include <assert.h>
#include <event2/http.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

/* The assembler reads the file; the Makefile makes this object anew when it changes. Paths are
 * those of the tree, where make runs. */
__asm__(".pushsection .rodata, \"a\", @progbits\n"
        ".global metrics_page_begin, metrics_page_end\n"
        ".hidden metrics_page_begin, metrics_page_end\n"
        "metrics_page_begin:\n"
        ".incbin \"src/metrics/page.html\"\n"
        "metrics_page_end:\n"
        ".popsection\n");

extern const char metrics_page_begin[], metrics_page_end[];

struct slice page_html(void)
{
    return slice_of(metrics_page_begin, (size_t)(metrics_page_end - metrics_page_begin));
}

/* What is between the page's only <tag> and its end. */
static struct slice content_of(const char *open, const char *close)
{
    struct slice page = page_html();
    const char *begin = memmem(page.ptr, page.len, open, strlen(open));
    assert(begin);
    begin += strlen(open);
    const char *end = memmem(begin, page.len - (size_t)(begin - page.ptr), close, strlen(close));
    assert(end);
    return slice_of(begin, (size_t)(end - begin));
}

static void append_hash(struct buf *out, struct slice text)
{
    unsigned char digest[SHA256_DIGEST_LENGTH], base64[4 * SHA256_DIGEST_LENGTH / 3 + 8];
    SHA256((const unsigned char *)text.ptr, text.len, digest);
    EVP_EncodeBlock(base64, digest, sizeof(digest));
    buf_append_cstr(out, "'sha256-");
    buf_append_cstr(out, (const char *)base64);
    buf_append_cstr(out, "'; ");
}

void page_add_policy(struct evkeyvalq *fields)
{
    struct buf policy = {0};
    buf_append_cstr(&policy, "default-src 'none'; script-src ");
    append_hash(&policy, content_of("<script>", "</script>"));
    buf_append_cstr(&policy, "style-src ");
    append_hash(&policy, content_of("<style>", "</style>"));
    buf_append_cstr(&policy, "connect-src 'self'; img-src data:; base-uri 'none'; form-action "
                             "'none'; frame-ancestors 'none'");
    evhttp_add_header(fields, "Content-Security-Policy", buf_cstr(&policy));
    evhttp_add_header(fields, "Referrer-Policy", "no-referrer");
    evhttp_add_header(fields, "Cross-Origin-Opener-Policy", "same-origin");
    evhttp_add_header(fields, "Cross-Origin-Resource-Policy", "same-origin");
    buf_deinit(&policy);
}
