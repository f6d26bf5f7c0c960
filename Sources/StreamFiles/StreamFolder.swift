import Glibc
package import Streams

/// The folder of `streams.directory`: a file for each stream, named by its number, and a lock that one hub holds.
///
/// A write is complete or is cut back. Confined to one thread.
package final class StreamFolder {
    /// One stream's file. Opened when it is written, and closed again if many are open.
    package final class File {
        fileprivate let path: String
        fileprivate var descriptor: Int32 = -1
        /// The length up to which the file is intact.
        fileprivate(set) var length: Int
        fileprivate var writtenAt = 0

        fileprivate init(_ path: String, length: Int) {
            self.path = path
            self.length = length
        }
    }

    /// One sentence that says what to do.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    private let path: String
    private let lock: Int32
    private var open: [File] = []
    private var writes = 0
    private static let mostOpen = 512
    private static let suffix = ".stream"
    /// The suffix of a file that is about to replace another.
    private static let replacement = ".new"

    /// Creates the folder if it is missing.
    package init(_ path: String) throws(Failure) {
        self.path = path
        // Parents are not created: an unmounted disk must not look like an empty one.
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            let advice = errno == ENOENT ? "; make the folder that it is to be in, or name another" : ""
            throw Failure(description: "streams.directory \(path) cannot be made: \(Self.reason)\(advice)")
        }
        lock = Glibc.open(path + "/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard lock >= 0 else {
            throw Failure(description: "streams.directory \(path) cannot be written: \(Self.reason)")
        }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            Glibc.close(lock)
            throw Failure(description: "streams.directory \(path) is another hub's: give each hub one of its own")
        }
    }

    deinit {
        for file in open { Glibc.close(file.descriptor) }
        Glibc.close(lock)
    }

    private static var reason: String { String(cString: strerror(errno)) }

    // MARK: Existing files

    /// All files of streams, with their content.
    package func readFiles() throws(Failure) -> [(file: File, bytes: [UInt8])] {
        guard let names = Self.names(in: path) else {
            throw Failure(description: "streams.directory \(path) cannot be read: \(Self.reason)")
        }
        var found: [(File, [UInt8])] = []
        // Left by a kill before they replaced their files.
        for name in names where name.hasSuffix(Self.suffix + Self.replacement) { unlink(path + "/" + name) }
        for name in names where name.hasSuffix(Self.suffix) {
            let bytes = try contents(of: path + "/" + name)
            found.append((File(path + "/" + name, length: bytes.count), bytes))
        }
        return found
    }

    /// The names in a folder; nil if it cannot be read, with the reason in `errno`.
    package static func names(in folder: String) -> [String]? {
        guard let listing = opendir(folder) else { return nil }
        defer { closedir(listing) }
        var names: [String] = []
        while let entry = readdir(listing) {
            // Read in place: an entry is only as long as its name, while a copy would read the whole structure.
            withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: name.pointee)) {
                    names.append(String(cString: $0))
                }
            }
        }
        return names
    }

    private func contents(of path: String) throws(Failure) -> [UInt8] {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure(description: "\(path) cannot be read: \(Self.reason)") }
        defer { Glibc.close(descriptor) }
        var bytes: [UInt8] = []
        while true {
            let start = bytes.count
            bytes += [UInt8](repeating: 0, count: 65_536)
            let count = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress.map { $0 + start }, 65_536)
            }
            guard count >= 0 else { throw Failure(description: "\(path) cannot be read: \(Self.reason)") }
            bytes.removeLast(65_536 - count)
            if count == 0 { return bytes }
        }
    }

    // MARK: Writing

    package func file(of id: StreamID) -> File {
        File(path + "/" + String(id.number, radix: 16) + Self.suffix, length: 0)
    }

    /// A kill may interrupt a write that crosses a page. So the first record's head is written last, after a placeholder: while that stands
    /// there, nothing of the write was acknowledged, and any other unreadable bytes are damage from outside (`RecordFrame.isTorn`).
    ///
    /// - Returns: false if the write failed; the file is then as it was.
    package func append(_ bytes: [UInt8], to file: File) -> Bool {
        guard openDescriptor(of: file), isWhole(file) else { return false }
        let head = min(RecordFrame.headBytes, bytes.count)
        let crossesPages = file.length / Self.page != (file.length + bytes.count) / Self.page
        guard
            crossesPages
                ? writeBytes(RecordFrame.unfinished[..<head] + bytes[head...], to: file, at: file.length)
                    && writeBytes(bytes[..<head], to: file, at: file.length)
                : writeBytes(bytes[...], to: file, at: file.length)
        else {
            cutFile(file)
            return false
        }
        file.length += bytes.count
        return true
    }

    private static let page = 4096

    private func writeBytes(_ bytes: ArraySlice<UInt8>, to file: File, at place: Int) -> Bool {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(file.descriptor, $0.baseAddress.map { $0 + written }, bytes.count - written, place + written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            written += count
        }
        return true
    }

    /// Whether the folder still has everything that was written: an append to a file that was removed or cut from outside is lost.
    private func isWhole(_ file: File) -> Bool {
        var status = stat()
        guard fstat(file.descriptor, &status) == 0 else { return false }
        if status.st_nlink > 0, status.st_size >= file.length { return true }
        errno = ENOENT
        return false
    }

    /// Rewrites a file. The new one is on the disk before it replaces the old one, so one of them is always there, whole.
    ///
    /// - Returns: false if it could not be written; the file is then as it was.
    package func replace(_ file: File, with bytes: [UInt8]) -> Bool {
        let new = File(file.path + Self.replacement, length: 0)
        new.descriptor = Glibc.open(new.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard new.descriptor >= 0 else { return false }
        guard writeBytes(bytes[...], to: new, at: 0), fdatasync(new.descriptor) == 0, rename(new.path, file.path) == 0
        else {
            let reason = errno
            Glibc.close(new.descriptor)
            unlink(new.path)
            errno = reason
            return false
        }
        closeFile(file)
        Glibc.close(new.descriptor)
        file.length = bytes.count
        return true
    }

    /// Cuts the file at a place, as after a torn write.
    package func cutFile(_ file: File, at length: Int) {
        guard openDescriptor(of: file) else { return }
        file.length = length
        cutFile(file)
    }

    /// If even this fails, the next write overwrites the excess.
    private func cutFile(_ file: File) { _ = ftruncate(file.descriptor, file.length) }

    /// - Returns: whether everything written is on the disk.
    package func syncFile(_ file: File) -> Bool { openDescriptor(of: file) && fdatasync(file.descriptor) == 0 }

    package func removeFile(_ file: File) {
        closeFile(file)
        unlink(file.path)
    }

    /// A part of what was written; nil if it cannot be read.
    package func readFile(_ file: File, _ range: Range<Int>) -> [UInt8]? {
        guard range.upperBound <= file.length else { return nil }
        let descriptor = Glibc.open(file.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: range.count)
        var done = 0
        while done < range.count {
            let count = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress.map { $0 + done }, range.count - done, range.lowerBound + done)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            done += count
        }
        return bytes
    }

    // MARK: The epoch

    /// The epoch of shared streams up to which the files are prefixes of logs that Redis had; nil if they never were.
    package var epoch: UInt64? {
        do {
            let text = String(decoding: try contents(of: path + "/epoch").prefix { $0 != 0x0A }, as: UTF8.self)
            // No epoch in Redis is larger.
            return UInt64(text).flatMap { $0 <= 1 << 52 ? $0 : nil }
        } catch {
            return nil
        }
    }

    /// If this cannot be written, the files count as those of a hub that was away.
    package func store(epoch: UInt64) {
        let descriptor = Glibc.open(path + "/epoch.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        let text = Array("\(epoch)\n".utf8)
        let isWritten = text.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, text.count) } == text.count
        Glibc.close(descriptor)
        if isWritten { rename(path + "/epoch.new", path + "/epoch") }
    }

    /// Moves a damaged file out of the way, for an operator to inspect.
    ///
    /// - Returns: its new path.
    @discardableResult package func setAside(_ file: File) -> String {
        closeFile(file)
        var path = file.path + ".damaged"
        var number = 1
        while access(path, F_OK) == 0 {
            number += 1
            path = file.path + ".damaged\(number)"
        }
        rename(file.path, path)
        return path
    }

    private func openDescriptor(of file: File) -> Bool {
        writes += 1
        file.writtenAt = writes
        guard file.descriptor < 0 else { return true }
        if open.count >= Self.mostOpen { closeOldest() }
        // A missing file that had content was removed from outside.
        file.descriptor = Glibc.open(file.path, O_WRONLY | (file.length == 0 ? O_CREAT : 0) | O_CLOEXEC, 0o600)
        guard file.descriptor >= 0 else { return false }
        open.append(file)
        return true
    }

    /// Closes half of them at once, so that the search is rare.
    private func closeOldest() {
        open.sort { $0.writtenAt < $1.writtenAt }
        for file in open.prefix(Self.mostOpen / 2) {
            Glibc.close(file.descriptor)
            file.descriptor = -1
        }
        open.removeFirst(Self.mostOpen / 2)
    }

    private func closeFile(_ file: File) {
        guard file.descriptor >= 0 else { return }
        Glibc.close(file.descriptor)
        file.descriptor = -1
        open.removeAll { $0 === file }
    }
}
