/* Inside of the quicklist: its nodes, for ds/quicklist*.c only. State: that of the list. */
#ifndef DS_QUICKLIST_PRIV_H
#define DS_QUICKLIST_PRIV_H

#include "ds/quicklist.h"

struct quicklist_node {
    struct quicklist_node *prev, *next;
    unsigned char *data; /* a listpack or plain bytes, or either compressed */
    size_t bytes;        /* of the listpack or the plain bytes, not compressed */
    uint32_t count;      /* elements; 1 in a plain node */
    uint32_t packed;     /* bytes of `data` when that is compressed, else 0 */
    bool plain;
};

struct quicklist {
    struct quicklist_node *head, *tail;
    uint64_t count, nodes;
    struct quicklist_limits limits;
    uint32_t depth;
    bool foreign; /* was given a listpack beyond its limits */
};

/* quicklist_node.c */

/* A new node that takes over the listpack; one with a copy of `element`, packed or plain. Not
 * linked. */
struct quicklist_node *quicklist_node_of_listpack(unsigned char *lp_take);
struct quicklist_node *quicklist_node_of_element(struct slice element, bool plain);
void quicklist_node_destroy(struct quicklist_node *n);
/* A copy, compressed if `n` is; not linked. */
struct quicklist_node *quicklist_node_copy(const struct quicklist_node *n);
/* The node's bytes decompressed into a new block; the node is compressed. */
unsigned char *quicklist_node_decompressed(const struct quicklist_node *n);
/* Makes the node's data its plain bytes or listpack; true when it was compressed. */
bool quicklist_node_open(struct quicklist_node *n);
/* Compresses the node, unless it is or that would save nothing worthwhile. */
void quicklist_node_compress(struct quicklist_node *n);
/* Sets the listpack of an open node. */
void quicklist_node_set(struct quicklist_node *n, unsigned char *lp);

#endif
