/* Reads zip archives in memory: stored entries in place, deflated entries by unpacking them if built with zlib.
 *
 * Refuses encryption, several disks, compression other than deflate, names that occur twice, entries that overlap,
 * sizes that do not fit the file, and contents that do not match their checksum. Sizes and offsets of 64 bits (ZIP64)
 * are supported. */
#ifndef MTAN_TOOLS_ZIPFILE_H
#define MTAN_TOOLS_ZIPFILE_H

#include <stddef.h>
#include <stdint.h>

typedef struct zip_entry {
    const char *name; /* in the archive, not terminated */
    size_t name_length;
    const uint8_t *packed;
    uint64_t packed_bytes, bytes;
    uint32_t checksum;
    int method;
} zip_entry;

typedef struct zipfile {
    const uint8_t *blob;
    size_t bytes;
    zip_entry *entries; /* stb_ds array, sorted by name */
    void **unpacked;    /* stb_ds array: what zip_content has allocated */
    uint64_t used;      /* bytes of the archive that zip_content has handed out or unpacked */
} zipfile;

/* Returns 1, or 0 with error (512 bytes) set and nothing to free. The blob must stay in memory. */
int zip_open(zipfile *z, const void *blob, size_t bytes, char *error);
const zip_entry *zip_find(const zipfile *z, const char *name);
/* The entry's content, checked; valid until zip_close. Ask once per entry: asking for more bytes than the archive holds
 * is refused as overlap. NULL with error set. */
const uint8_t *zip_content(zipfile *z, const zip_entry *entry, char *error);
void zip_close(zipfile *z);

uint32_t zip_checksum(const void *bytes, size_t n); /* CRC-32 */

#endif
