/* SPDX-License-Identifier: MIT */
/*
 * Blobs of logical units as files of the state directory.
 *
 * Invariants:
 * 1. A file is replaced as a whole: written beside it, fsync, rename, fsync of the folder. A
 *    crash at any point leaves the old one or the new one.
 * 2. done(0) comes after the fsync of the folder.
 * 3. One thing at a time is done in the folder, in the order in which it was asked for: no two
 *    write the same file, and who opens sees all that was saved before.
 * 4. What a file says is taken only if magic, version, length, owner, name and CRC are right;
 *    anything else is as if there were no file, and an event.
 *
 * Not here: who holds the folder (identity.c); what blobs mean (target/scsi).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/conf.h"
#include "core/crc32c.h"
#include "core/event.h"
#include "core/wire.h"
#include "target/lu_files.h"

#define NAME_LEN 16
#define FILE_NAME_MAX (CONF_NAME_MAX + 32)

struct header {
	uint8_t magic[8];
	uint8_t version[4];
	uint8_t length[4];
	uint8_t uuid[16];
	uint8_t name[NAME_LEN];
	uint8_t zero[12];
	uint8_t crc[4];
};
static_assert(sizeof(struct header) == LU_FILE_HEADER, "no padding");
static_assert(offsetof(struct header, name) == 32 && offsetof(struct header, crc) == 60, "layout");

static const char *const names[LU_BLOBS] = {
	[LU_BLOB_MODE] = "mode",
	[LU_BLOB_SANITIZE] = "sanitize",
};

struct blob {
	uint8_t *data; /* NULL: none */
	uint32_t length;
	const char *ignored; /* why the file is not taken; NULL: it is, or there is none */
};

struct file_store {
	struct lu_store store;
	LIST_ENTRY(file_store) all_link;
	STAILQ_ENTRY(file_store) opening_link;
	struct lu_files *files;
	const char *kind;
	char name[CONF_NAME_MAX];
	uuid_t uuid;
	struct blob blobs[LU_BLOBS];
	unsigned saves; /* on their way */
	bool opening;
	bool superseded;
	lu_files_open_fn *done;
	void *arg;
};

struct lu_files {
	struct env_work work;
	struct env *env;
	int dir_fd;
	LIST_HEAD(, file_store) stores;
	/* What waits; an open waits for the saves that came before it, saves of its own come after. */
	STAILQ_HEAD(, lu_save) saves;
	STAILQ_HEAD(, file_store) opens;
	bool busy;
	void (*drained)(void *arg); /* NULL: nobody waits for it */
	void *drained_arg;
	/* What the worker has. */
	struct lu_save *save;
	struct file_store *open;
};

static void file_name(char out[FILE_NAME_MAX], const struct file_store *fs, enum lu_blob blob)
{
	/* Names are checked by the configuration: letters, digits and -_. only. */
	snprintf(out, FILE_NAME_MAX, "%s-%s.%s", fs->kind, fs->name, names[blob]);
}

static uint32_t header_crc(const struct header *header, const void *data, uint32_t length)
{
	uint32_t state = crc32c_add(CRC32C_START, header, offsetof(struct header, crc));

	return crc32c_end(crc32c_add(state, data, length));
}

static void fill_header(struct header *header, const struct file_store *fs, enum lu_blob blob,
			const void *data, uint32_t length)
{
	memset(header, 0, sizeof(*header));
	memcpy(header->magic, LU_FILE_MAGIC, sizeof(header->magic));
	put_le32(header->version, LU_FILE_VERSION);
	put_le32(header->length, length);
	memcpy(header->uuid, fs->uuid, sizeof(header->uuid));
	memcpy(header->name, names[blob], strlen(names[blob]));
	put_le32(header->crc, header_crc(header, data, length));
}

/* ---- reading, on the worker */

/* NULL: HEADER and what follows it are the blob of FS. */
static const char *wrong(const struct file_store *fs, enum lu_blob blob,
			 const struct header *header, const uint8_t *data, uint32_t length)
{
	struct header want;

	fill_header(&want, fs, blob, data, length);
	if (memcmp(header->magic, want.magic, sizeof(want.magic)) != 0)
		return "it is no saved state";
	if (memcmp(header->version, want.version, sizeof(want.version)) != 0)
		return "another version wrote it";
	if (get_le32(header->length) != length)
		return "its length is wrong";
	if (get_le32(header->crc) != header_crc(header, data, length))
		return "its checksum is wrong";
	if (memcmp(header->uuid, want.uuid, sizeof(want.uuid)) != 0)
		return "it belongs to another identity";
	if (memcmp(header, &want, sizeof(want)) != 0)
		return "it is of another kind";
	return NULL;
}

static int read_all(int fd, void *to, size_t length)
{
	uint8_t *at = to;
	ssize_t n;

	while (length > 0) {
		n = read(fd, at, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		at += n;
		length -= (size_t)n;
	}
	return 0;
}

static const char *read_open_file(int fd, const struct file_store *fs, enum lu_blob kind,
				  struct blob *blob)
{
	struct header header;
	const char *why;
	struct stat st;

	if (fstat(fd, &st))
		return "it cannot be read";
	if (!S_ISREG(st.st_mode))
		return "it is no file";
	if (st.st_size < LU_FILE_HEADER)
		return "it is too short";
	if (st.st_size > LU_FILE_HEADER + (off_t)LU_BLOB_MAX)
		return "it is too large";
	blob->length = (uint32_t)(st.st_size - LU_FILE_HEADER);
	blob->data = malloc(blob->length + 1); /* NULL means that there is none */
	if (!blob->data)
		return "out of memory";
	if (read_all(fd, &header, sizeof(header)) || read_all(fd, blob->data, blob->length))
		why = "it cannot be read";
	else
		why = wrong(fs, kind, &header, blob->data, blob->length);
	if (why) {
		free(blob->data);
		blob->data = NULL;
	}
	return why;
}

static void read_blob(struct file_store *fs, enum lu_blob kind)
{
	char file[FILE_NAME_MAX];
	int fd;

	file_name(file, fs, kind);
	/* Nothing that waits for somebody: what lies there may be no file of ours. */
	fd = openat(fs->files->dir_fd, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd >= 0) {
		fs->blobs[kind].ignored = read_open_file(fd, fs, kind, &fs->blobs[kind]);
		close(fd);
	} else if (errno != ENOENT) {
		fs->blobs[kind].ignored = "it cannot be opened";
	}
}

/* ---- writing, on the worker */

static int write_all(int fd, const void *from, size_t length)
{
	const uint8_t *at = from;
	ssize_t n;

	while (length > 0) {
		n = write(fd, at, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		at += n;
		length -= (size_t)n;
	}
	return 0;
}

static int write_blob(const struct file_store *fs, const struct lu_save *save)
{
	char file[FILE_NAME_MAX], temp[FILE_NAME_MAX + 4];
	int dir_fd = fs->files->dir_fd, fd, err;
	struct header header;

	file_name(file, fs, save->blob);
	snprintf(temp, sizeof(temp), "%s.new", file);
	fill_header(&header, fs, save->blob, save->data, save->length);
	/* What a crash left there goes, and whatever else: opening a pipe would wait for ever. */
	if (unlinkat(dir_fd, temp, 0) && errno != ENOENT)
		return -errno;
	fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = write_all(fd, &header, sizeof(header));
	if (!err)
		err = write_all(fd, save->data, save->length);
	if (!err && fsync(fd))
		err = -errno;
	close(fd);
	if (!err && renameat(dir_fd, temp, dir_fd, file))
		err = -errno;
	if (err) {
		unlinkat(dir_fd, temp, 0);
		return err;
	}
	return fsync(dir_fd) ? -errno : 0;
}

/* ---- one thing at a time */

static void work_run(struct env_work *work)
{
	struct lu_files *files = container_of(work, struct lu_files, work);
	unsigned i;

	if (files->save && !files->save->error)
		files->save->error = write_blob(files->save->owner, files->save);
	for (i = 0; files->open && i < LU_BLOBS; i++)
		read_blob(files->open, i);
}

static void next(struct lu_files *files)
{
	if (files->busy)
		return;
	files->save = STAILQ_FIRST(&files->saves);
	if (files->save) {
		struct file_store *fs = files->save->owner;

		STAILQ_REMOVE_HEAD(&files->saves, link);
		files->save->error = fs->superseded ? -ESTALE : 0;
	} else {
		files->open = STAILQ_FIRST(&files->opens);
		if (!files->open)
			return;
		STAILQ_REMOVE_HEAD(&files->opens, opening_link);
	}
	files->busy = true;
	env_work_submit(files->env, &files->work);
}

static void save_ended(struct lu_save *save)
{
	struct file_store *fs = save->owner;
	char file[FILE_NAME_MAX];

	fs->saves--;
	if (save->error && save->error != -ESTALE) {
		file_name(file, fs, save->blob);
		event_emit(EVENT_STATE_NOT_SAVED, fs->name, file, strerror(-save->error));
	}
	save->done(save, save->error);
}

static void open_ended(struct file_store *fs)
{
	char file[FILE_NAME_MAX];
	unsigned i;

	for (i = 0; i < LU_BLOBS; i++) {
		if (!fs->blobs[i].ignored)
			continue;
		file_name(file, fs, i);
		event_emit(EVENT_STATE_IGNORED, fs->name, file, fs->blobs[i].ignored);
	}
	fs->opening = false;
	fs->done(fs->arg, &fs->store);
}

static void work_done(struct env_work *work)
{
	struct lu_files *files = container_of(work, struct lu_files, work);
	struct lu_save *save = files->save;
	struct file_store *fs = files->open;

	files->busy = false;
	files->save = NULL;
	files->open = NULL;
	next(files);
	if (save)
		save_ended(save);
	else
		open_ended(fs);
}

/* ---- the store */

static const void *file_load(const struct lu_store *store, enum lu_blob blob, uint32_t *length)
{
	const struct file_store *fs = container_of(store, const struct file_store, store);

	*length = fs->blobs[blob].length;
	return fs->blobs[blob].data;
}

static void file_save(struct lu_store *store, struct lu_save *save)
{
	struct file_store *fs = container_of(store, struct file_store, store);

	assert(save->blob < LU_BLOBS && save->length <= LU_BLOB_MAX);
	save->owner = fs;
	fs->saves++;
	STAILQ_INSERT_TAIL(&fs->files->saves, save, link);
	next(fs->files);
}

static void file_close(struct lu_store *store)
{
	struct file_store *fs = container_of(store, struct file_store, store);
	unsigned i;

	assert(fs->saves == 0 && !fs->opening);
	LIST_REMOVE(fs, all_link);
	if (LIST_EMPTY(&fs->files->stores) && fs->files->drained)
		fs->files->drained(fs->files->drained_arg);
	for (i = 0; i < LU_BLOBS; i++)
		free(fs->blobs[i].data);
	free(fs);
}

void lu_files_open(struct lu_files *files, const char *kind, const char *name, const uuid_t uuid,
		   lu_files_open_fn *done, void *arg)
{
	struct file_store *fs = calloc(1, sizeof(*fs)), *other;

	if (!fs) {
		done(arg, NULL);
		return;
	}
	LIST_FOREACH(other, &files->stores, all_link)
		if (strcmp(other->kind, kind) == 0 && strcmp(other->name, name) == 0)
			other->superseded = true;
	fs->store = (struct lu_store){ .load = file_load, .save = file_save, .close = file_close };
	fs->files = files;
	fs->kind = kind;
	snprintf(fs->name, sizeof(fs->name), "%s", name);
	uuid_copy(fs->uuid, uuid);
	fs->opening = true;
	fs->done = done;
	fs->arg = arg;
	LIST_INSERT_HEAD(&files->stores, fs, all_link);
	STAILQ_INSERT_TAIL(&files->opens, fs, opening_link);
	next(files);
}

struct lu_files *lu_files_new(struct env *env, int dir_fd)
{
	struct lu_files *files = calloc(1, sizeof(*files));

	if (!files)
		return NULL;
	files->env = env;
	files->dir_fd = dir_fd;
	files->work.run = work_run;
	files->work.done = work_done;
	LIST_INIT(&files->stores);
	STAILQ_INIT(&files->saves);
	STAILQ_INIT(&files->opens);
	return files;
}

void lu_files_drain(struct lu_files *files, void (*done)(void *arg), void *arg)
{
	files->drained = done;
	files->drained_arg = arg;
	if (LIST_EMPTY(&files->stores))
		done(arg);
}

void lu_files_free(struct lu_files *files)
{
	assert(LIST_EMPTY(&files->stores) && !files->busy);
	free(files);
}
