/* The file of a reserve (reserve.h): slots of fixed size, each with a block of a stream and what
 * tells that it is that one, whole. It has no name: nobody else opens it, and it is gone with the
 * process, however that ends.
 *
 * | bytes | a slot; numbers are the machine's, as no other process ever reads them |
 * |---|---|
 * | 8 | CRC-64 (base/crc.h) of all that follows |
 * | 8 | life: a random number that the stream has been given |
 * | 8 | start: the offset of the block's first byte in it |
 * | 8 | 0 |
 * | 16352 | the block's bytes (CHAIN_BLOCK_BYTES) |
 *
 * Errors are errno values, 0 is success. State: none but the descriptor, which is the caller's. All
 * may wait for the disk. */
#ifndef REPL_RESERVE_FILE_H
#define REPL_RESERVE_FILE_H

#include "base/compiler.h"
#include "repl/chain.h"

#include <stdint.h>

#define RESERVE_SLOT_BYTES (16 * 1024)

/* Makes the file in the working directory, so many bytes long, with its room on the disk taken
 * where the file system can do that (else it grows as it is written). `name`: what it is called for
 * the moment where a file without a name cannot be made; whatever stood there goes. *fd is its
 * descriptor. */
int reserve_file_create(const char *name, uint64_t bytes, int *fd) MUST_CHECK;
/* Makes a slot of a whole block in `slot`, which has RESERVE_SLOT_BYTES. */
void reserve_slot_fill(char *slot, uint64_t life, uint64_t start,
                       const char bytes[CHAIN_BLOCK_BYTES]);
/* Writes `count` slots from slot number `index` on. */
int reserve_file_write(int fd, uint64_t index, const char *slots, unsigned count) MUST_CHECK;
/* Reads slot number `index` to `slot`, which has RESERVE_SLOT_BYTES; *bytes are the block's, in
 * there. EBADMSG: what stands there is not that block, or not whole. */
int reserve_file_read(int fd, uint64_t index, uint64_t life, uint64_t start, char *slot,
                      const char **bytes) MUST_CHECK;

#endif
