/* Preloaded into a process, keeps a journal of what it does to the files below one directory: THALWEG_POWER_ROOT.
 *
 * tests/crash/power.py makes of that journal what would be on disk if the power had failed at any moment of the run. A sync is
 * only noted, not done: whether the bytes reach this machine's disk does not matter. Each operation and its entry in the journal
 * are one step under a lock, so the journal's order is the order of what happened. No call of libc's is needed to do the work:
 * the system is called at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

struct entry { /* followed by the name and the data; power.py reads it as "<cxxxIQQqII" */
    char kind;
    char unused[3];
    uint32_t pid;
    uint64_t directory, inode;
    int64_t number;
    uint32_t name_length, data_length;
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static int journal = -1;

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("THALWEG_POWER_ROOT"), *file = getenv("THALWEG_POWER_JOURNAL");
    if (at == NULL || file == NULL || strlen(at) >= sizeof root) return;
    strcpy(root, at);
    root_length = strlen(root);
    int opened = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    journal = fcntl(opened, F_DUPFD_CLOEXEC, 500); /* out of the way of programs that count on the lowest numbers */
    syscall(SYS_close, opened);
    if (journal < 0) abort();
}

static void note(char kind, uint64_t directory, uint64_t inode, int64_t number, const char *name, const void *data, size_t length) {
    struct entry head = {kind, {0}, (uint32_t)getpid(), directory, inode, number, name ? strlen(name) : 0, length};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)name, head.name_length}, {(void *)data, length}};
    ssize_t all = sizeof head + head.name_length + length;
    if (syscall(SYS_writev, journal, parts, 3) != all) abort(); /* a journal with a hole would prove anything */
}

/* Whether the path lies below the root, or is it. */
static int is_below(const char *path) {
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

/* The inode behind a descriptor of a file or directory below the root; 0 for everything else. */
static uint64_t watched(int handle) {
    struct stat status;
    char link[64], path[PATH_MAX];
    if (journal < 0 || handle == journal || fstat(handle, &status) != 0) return 0;
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path) ? status.st_ino : 0;
}

/* Where a name lies: its directory's inode and its last part. 0 when that is not below the root. */
static int placed(int at, const char *path, uint64_t *directory, char *name) {
    char parent[PATH_MAX], real[PATH_MAX], link[64];
    struct stat status;
    if (journal < 0 || path == NULL || strlen(path) >= sizeof parent) return 0;
    strcpy(parent, path);
    size_t length = strlen(parent);
    while (length > 1 && parent[length - 1] == '/') parent[--length] = 0;
    char *slash = strrchr(parent, '/');
    const char *last = slash ? slash + 1 : parent;
    if (strlen(last) > NAME_MAX) return 0;
    strcpy(name, last);
    if (slash == NULL) strcpy(parent, ".");
    else if (slash == parent) strcpy(parent, "/");
    else *slash = 0;
    int opened = syscall(SYS_openat, at, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (opened < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", opened);
    ssize_t count = readlink(link, real, sizeof real - 1);
    int known = count >= 0 && fstat(opened, &status) == 0;
    syscall(SYS_close, opened);
    if (!known) return 0;
    real[count] = 0;
    *directory = status.st_ino;
    return is_below(real);
}

static uint64_t inode_at(int at, const char *path) {
    struct stat status;
    return fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

static int opened_at(int at, const char *path, int flags, mode_t mode) {
    uint64_t directory = 0, inode;
    char name[NAME_MAX + 1];
    if (!(flags & (O_CREAT | O_TRUNC)) || !placed(at, path, &directory, name)) return syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_lock(&turn);
    int is_new = (flags & O_CREAT) && inode_at(at, path) == 0;
    int handle = syscall(SYS_openat, at, path, flags, mode), failed = errno;
    if (handle >= 0 && (inode = watched(handle)) != 0) {
        if (is_new) note('c', directory, inode, 0, name, NULL, 0);
        else if (flags & O_TRUNC) note('t', 0, inode, 0, NULL, NULL, 0);
    }
    pthread_mutex_unlock(&turn);
    errno = failed;
    return handle;
}

#define MODE(flags) mode_t mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }
SHOWN int open(const char *path, int flags, ...) { MODE(flags) return opened_at(AT_FDCWD, path, flags, mode); }
SHOWN int open64(const char *path, int flags, ...) { MODE(flags) return opened_at(AT_FDCWD, path, flags, mode); }
SHOWN int openat(int at, const char *path, int flags, ...) { MODE(flags) return opened_at(at, path, flags, mode); }
SHOWN int openat64(int at, const char *path, int flags, ...) { MODE(flags) return opened_at(at, path, flags, mode); }
SHOWN int creat(const char *path, mode_t mode) { return opened_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* Pieces that go to one place; `offset` is -1 for where the descriptor stands. */
static ssize_t written(int handle, const struct iovec *pieces, int count, off_t offset) {
    uint64_t inode = watched(handle);
    if (inode != 0) pthread_mutex_lock(&turn);
    off_t place = offset;
    if (inode != 0 && offset < 0) {
        struct stat status;
        place = (fcntl(handle, F_GETFL) & O_APPEND) && fstat(handle, &status) == 0 ? status.st_size : lseek(handle, 0, SEEK_CUR);
    }
    ssize_t done = 0;
    for (int number = 0; number < count; number++) {
        const struct iovec *piece = &pieces[number];
        ssize_t now = offset < 0 ? syscall(SYS_write, handle, piece->iov_base, piece->iov_len)
                                 : syscall(SYS_pwrite64, handle, piece->iov_base, piece->iov_len, offset + done);
        if (now < 0) { done = done ? done : -1; break; }
        if (inode != 0 && now > 0) note('w', 0, inode, place + done, NULL, piece->iov_base, now);
        done += now;
        if ((size_t)now < piece->iov_len) break;
    }
    int failed = errno;
    if (inode != 0) pthread_mutex_unlock(&turn);
    errno = failed;
    return done;
}

static ssize_t written_at(int handle, const void *data, size_t length, off_t offset) {
    struct iovec piece = {(void *)data, length};
    return written(handle, &piece, 1, offset);
}
SHOWN ssize_t write(int handle, const void *data, size_t length) { return written_at(handle, data, length, -1); }
SHOWN ssize_t pwrite(int handle, const void *data, size_t length, off_t at) { return written_at(handle, data, length, at); }
SHOWN ssize_t pwrite64(int handle, const void *data, size_t length, off64_t at) { return written_at(handle, data, length, at); }
SHOWN ssize_t writev(int handle, const struct iovec *pieces, int count) {
    return watched(handle) ? written(handle, pieces, count, -1) : syscall(SYS_writev, handle, pieces, count);
}
SHOWN ssize_t pwritev(int handle, const struct iovec *pieces, int count, off_t at) { return written(handle, pieces, count, at); }
SHOWN ssize_t pwritev64(int handle, const struct iovec *pieces, int count, off64_t at) { return written(handle, pieces, count, at); }

/* Copies within the kernel would pass by: who tries them falls back to reading and writing. */
SHOWN ssize_t sendfile(int out, int in, off_t *at, size_t length) {
    if (watched(out)) { errno = EINVAL; return -1; }
    return syscall(SYS_sendfile, out, in, at, length);
}
SHOWN ssize_t sendfile64(int out, int in, off64_t *at, size_t length) { return sendfile(out, in, at, length); }
SHOWN ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t length, unsigned flags) {
    if (watched(out)) { errno = EXDEV; return -1; }
    return syscall(SYS_copy_file_range, in, from, out, to, length, flags);
}

/* What is written through a mapping cannot be seen: such a file is named, and its contents are not believed. */
SHOWN void *mmap(void *address, size_t length, int protection, int flags, int handle, off_t offset) {
    uint64_t inode = handle >= 0 && (flags & MAP_SHARED) && (protection & PROT_WRITE) ? watched(handle) : 0;
    if (inode != 0) note('m', 0, inode, 0, NULL, NULL, 0);
    return (void *)syscall(SYS_mmap, address, length, protection, flags, handle, offset);
}
SHOWN void *mmap64(void *address, size_t length, int protection, int flags, int handle, off64_t offset) {
    return mmap(address, length, protection, flags, handle, offset);
}

SHOWN int ftruncate(int handle, off_t size) {
    uint64_t inode = watched(handle);
    if (inode == 0) return syscall(SYS_ftruncate, handle, size);
    pthread_mutex_lock(&turn);
    int done = syscall(SYS_ftruncate, handle, size), failed = errno;
    if (done == 0) note('t', 0, inode, size, NULL, NULL, 0);
    pthread_mutex_unlock(&turn);
    errno = failed;
    return done;
}
SHOWN int ftruncate64(int handle, off64_t size) { return ftruncate(handle, size); }
SHOWN int truncate(const char *path, off_t size) {
    int handle = open(path, O_WRONLY | O_CLOEXEC);
    if (handle < 0) return -1;
    int done = ftruncate(handle, size), failed = errno;
    syscall(SYS_close, handle);
    errno = failed;
    return done;
}
SHOWN int truncate64(const char *path, off64_t size) { return truncate(path, size); }

/* Room in advance: only that it makes a file longer is noted. */
SHOWN int fallocate(int handle, int mode, off_t offset, off_t length) {
    uint64_t inode = watched(handle);
    struct stat status;
    if (inode == 0) return syscall(SYS_fallocate, handle, mode, offset, length);
    if (mode != 0) { errno = EOPNOTSUPP; return -1; }
    pthread_mutex_lock(&turn);
    int done = syscall(SYS_fallocate, handle, mode, offset, length), failed = errno;
    if (done == 0 && fstat(handle, &status) == 0) note('t', 0, inode, status.st_size, NULL, NULL, 0);
    pthread_mutex_unlock(&turn);
    errno = failed;
    return done;
}
SHOWN int fallocate64(int handle, int mode, off64_t offset, off64_t length) { return fallocate(handle, mode, offset, length); }
SHOWN int posix_fallocate(int handle, off_t offset, off_t length) { return fallocate(handle, 0, offset, length) == 0 ? 0 : errno; }
SHOWN int posix_fallocate64(int handle, off64_t offset, off64_t length) { return posix_fallocate(handle, offset, length); }

static int synced(int handle, long number) {
    uint64_t inode = watched(handle);
    if (inode == 0) return syscall(number, handle);
    pthread_mutex_lock(&turn);
    note('s', 0, inode, 0, NULL, NULL, 0);
    pthread_mutex_unlock(&turn);
    return 0;
}
SHOWN int fsync(int handle) { return synced(handle, SYS_fsync); }
SHOWN int fdatasync(int handle) { return synced(handle, SYS_fdatasync); }

SHOWN int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    uint64_t source = 0, target = 0;
    char old[NAME_MAX + 1], new[NAME_MAX + 1];
    if (!placed(from_at, from, &source, old) || !placed(to_at, to, &target, new))
        return syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    pthread_mutex_lock(&turn);
    uint64_t inode = inode_at(from_at, from);
    int done = syscall(SYS_renameat2, from_at, from, to_at, to, flags), failed = errno;
    if (done == 0) note('r', source, inode, (int64_t)target, old, new, strlen(new));
    pthread_mutex_unlock(&turn);
    errno = failed;
    return done;
}
SHOWN int renameat(int from_at, const char *from, int to_at, const char *to) { return renameat2(from_at, from, to_at, to, 0); }
SHOWN int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

SHOWN int unlinkat(int at, const char *path, int flags) {
    uint64_t directory = 0;
    char name[NAME_MAX + 1];
    if (!placed(at, path, &directory, name)) return syscall(SYS_unlinkat, at, path, flags);
    pthread_mutex_lock(&turn);
    int done = syscall(SYS_unlinkat, at, path, flags), failed = errno;
    if (done == 0) note('u', directory, 0, 0, name, NULL, 0);
    pthread_mutex_unlock(&turn);
    errno = failed;
    return done;
}
SHOWN int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
SHOWN int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
SHOWN int remove(const char *path) {
    int done = unlink(path);
    return done != 0 && (errno == EISDIR || errno == EPERM) ? rmdir(path) : done;
}

SHOWN int mkdirat(int at, const char *path, mode_t mode) {
    uint64_t directory = 0;
    char name[NAME_MAX + 1];
    if (!placed(at, path, &directory, name)) return syscall(SYS_mkdirat, at, path, mode);
    pthread_mutex_lock(&turn);
    int done = syscall(SYS_mkdirat, at, path, mode), failed = errno;
    if (done == 0) note('d', directory, inode_at(at, path), 0, name, NULL, 0);
    pthread_mutex_unlock(&turn);
    errno = failed;
    return done;
}
SHOWN int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

SHOWN int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    uint64_t directory = 0;
    char name[NAME_MAX + 1];
    if (!placed(to_at, to, &directory, name)) return syscall(SYS_linkat, from_at, from, to_at, to, flags);
    pthread_mutex_lock(&turn);
    int done = syscall(SYS_linkat, from_at, from, to_at, to, flags), failed = errno;
    if (done == 0) note('l', directory, inode_at(to_at, to), 0, name, NULL, 0);
    pthread_mutex_unlock(&turn);
    errno = failed;
    return done;
}
SHOWN int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
