/* See tls_names.h. */
#include "net/tls_names.h"

#include "base/glob.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <string.h>

struct patterns {
    char *const *list;
    int count;
};

static bool matches(const struct patterns *p, struct slice name, bool nocase)
{
    if (name.len == 0 || memchr(name.ptr, '\0', name.len)) {
        return false;
    }
    for (int i = 0; i < p->count; i++) {
        if (glob_match(slice_cstr(p->list[i]), name, nocase)) {
            return true;
        }
    }
    return false;
}

static bool common_name_matches(const X509 *certificate, const struct patterns *p)
{
    X509_NAME *subject = X509_get_subject_name(certificate);
    bool found = false;
    int at = -1;
    while (!found && (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0) {
        unsigned char *text = NULL;
        const ASN1_STRING *data = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
        int len = ASN1_STRING_to_UTF8(&text, data);
        found = len > 0 && matches(p, slice_of((char *)text, (size_t)len), false);
        OPENSSL_free(text);
    }
    return found;
}

static bool address_matches(const ASN1_OCTET_STRING *address, const struct patterns *p)
{
    char text[INET6_ADDRSTRLEN];
    int len = ASN1_STRING_length(address);
    int family = len == 4 ? AF_INET : len == 16 ? AF_INET6 : -1;
    return family >= 0 &&
           inet_ntop(family, ASN1_STRING_get0_data(address), text, sizeof(text)) != NULL &&
           matches(p, slice_cstr(text), true);
}

static bool general_name_matches(const GENERAL_NAME *name, const struct patterns *p)
{
    int type;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);
    if (type == GEN_IPADD) {
        return address_matches(value, p);
    }
    if (type != GEN_DNS && type != GEN_EMAIL && type != GEN_URI) {
        return false;
    }
    struct slice text =
        slice_of((const char *)ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value));
    return matches(p, text, type == GEN_DNS);
}

bool tls_names_match(const X509 *certificate, char *const *patterns, int count)
{
    const struct patterns p = {patterns, count};
    if (common_name_matches(certificate, &p)) {
        return true;
    }
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    bool found = false;
    for (int i = 0; !found && i < sk_GENERAL_NAME_num(names); i++) {
        found = general_name_matches(sk_GENERAL_NAME_value(names, i), &p);
    }
    GENERAL_NAMES_free(names);
    return found;
}

static bool append_common_name(const X509 *certificate, struct buf *out)
{
    X509_NAME *subject = X509_get_subject_name(certificate);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    unsigned char *text = NULL;
    int len = at < 0 ? 0
                     : ASN1_STRING_to_UTF8(
                           &text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (len > 0) {
        buf_append(out, (const char *)text, (size_t)len);
    }
    OPENSSL_free(text);
    return len > 0;
}

void tls_names_append(const X509 *certificate, struct buf *out)
{
    if (append_common_name(certificate, out)) {
        return;
    }
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        int type;
        const ASN1_STRING *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
        if (type == GEN_DNS || type == GEN_EMAIL || type == GEN_URI) {
            buf_append(out, (const char *)ASN1_STRING_get0_data(value),
                       (size_t)ASN1_STRING_length(value));
            break;
        }
    }
    GENERAL_NAMES_free(names);
}
