/* A folder with all that is in it, in memory. */
#ifndef MTAN_TESTS_FAULTS_TREE_H
#define MTAN_TESTS_FAULTS_TREE_H

#include <stddef.h>
#include <stdint.h>

enum { TREE_PATH = 256 };

typedef struct tree_file {
    char path[TREE_PATH]; /* from the folder on */
    int is_folder;
    char *bytes;
    size_t n;
} tree_file;

typedef struct tree {
    tree_file *files; /* in the order of their paths: a folder stands before what is in it */
    size_t n;
} tree;

/* Ends the program with a message when the system refuses. */
void fail_system(const char *what);

char *bytes_copy(const void *bytes, size_t n); /* zero-terminated behind them; free() it */
char *file_bytes(const char *path, size_t *n); /* the same of a file */

tree tree_read(const char *folder);                 /* empty when there is none */
void tree_write(const tree *t, const char *folder); /* makes the folder what the tree is: nothing else stays in it */
void tree_free(tree *t);

void tree_put(tree *t, const char *path, int is_folder, const void *bytes,
              size_t n);                                     /* in its place; twice: the later */
const tree_file *tree_find(const tree *t, const char *path); /* or NULL */
int file_same(const tree_file *a, const tree_file *b);
/* The path of the first thing in which they differ; NULL: they are the same. */
const char *tree_difference(const tree *a, const tree *b);
uint64_t tree_hash(const tree *t);

#endif
