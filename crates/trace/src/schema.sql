-- Recording of the file operations of a program (fslab record). Times are nanoseconds.
-- Numbers of paths, nodes, and tasks are indexes plus 1; 0 is "none".
-- Facts: program, root, kernel, filesystem, elapsed_ns, and what was not recorded.
CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT;
-- Relative paths, targets of symbolic links, names of extended attributes.
CREATE TABLE path (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
-- Files below the root before the program started; parents first, node 1 is the root.
-- parent: number of the directory, from 0. kind: 0 file, 1 directory, 2 symbolic link, 3 device, 4 FIFO, 5 socket. same: first node of the same file.
CREATE TABLE node (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name INTEGER NOT NULL,
  kind INTEGER NOT NULL, size INTEGER NOT NULL, mode INTEGER NOT NULL, same INTEGER NOT NULL,
  target INTEGER NOT NULL) STRICT;
-- Processes and threads.
CREATE TABLE task (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, process INTEGER NOT NULL,
  begin INTEGER NOT NULL, name TEXT NOT NULL) STRICT;
-- Operations of a task: compressed columns, see crates/trace/src/columns.rs.
CREATE TABLE chunk (id INTEGER PRIMARY KEY, task INTEGER NOT NULL, count INTEGER NOT NULL,
  columns BLOB NOT NULL) STRICT;
