import Administration
import CLinux
import DurableStreams
import Glibc
import Settings
import StreamFiles

/// Checks of `roost doctor` on the folder of streams. They create and change nothing.
struct StreamsExamination {
    let settings: StreamSettings

    private static let subject = "streams"
    private static let mebibyte: Int64 = 1_048_576
    /// A disk with less free space counts as full: a stream may need as much at any moment.
    private static let least = mebibyte

    private func errorFinding(_ sentence: String) -> Finding { Finding(.error, Self.subject, sentence) }
    private func warningFinding(_ sentence: String) -> Finding { Finding(.warning, Self.subject, sentence) }

    func runChecks() -> [Finding] {
        guard let folder = settings.directory else {
            return [Finding(.good, Self.subject, "The hub serves no streams (streams.directory is not set).")] + entries
        }
        return routes + entries + checkFolder(of: folder) + checkDamagedFiles(in: folder)
    }

    private var routes: [Finding] {
        settings.routes.filter { StreamRoute($0) == nil }.map {
            errorFinding(
                "streams.routes has `\($0)`, which is not a route; write it like /reply=reply/{conversation}.")
        }
    }

    private var entries: [Finding] {
        var found: [Finding] = []
        do throws(RunFailure) { _ = try settings.closeRules() } catch {
            found.append(self.errorFinding(error.sentence))
        }
        do throws(RunFailure) { _ = try settings.boundRules() } catch {
            found.append(self.errorFinding(error.sentence))
        }
        return found
    }

    private func checkFolder(of folder: String) -> [Finding] {
        var status = stat()
        let isThere = stat(folder, &status) == 0
        guard isThere || errno == ENOENT else {
            return [errorFinding("streams.directory \(folder) cannot be looked at (\(Self.reason)).")]
        }
        guard !isThere || status.st_mode & S_IFMT == S_IFDIR else {
            return [errorFinding("streams.directory \(folder) is not a folder; name one of the hub's own.")]
        }
        // The hub creates the folder if it is missing, but no parent of it.
        let place = isThere ? folder : Self.parentFolder(of: folder)
        guard access(place, W_OK | X_OK) == 0 else {
            let (what, reason) = (isThere ? "cannot be written" : "cannot be made", Self.reason)
            return [
                errorFinding(
                    "streams.directory \(folder) \(what) (\(place): \(reason)), so the hub does not start; give its user the "
                        + "right, or name another folder.")
            ]
        }
        let problems = checkVolume(at: place)
        return problems.isEmpty ? [Finding(.good, Self.subject, "Streams can be kept in \(folder).")] : problems
    }

    /// The problems of a folder's disk.
    private func checkVolume(at place: String) -> [Finding] {
        var volume = statvfs()
        guard statvfs(place, &volume) == 0 else {
            return [errorFinding("The disk of \(place) cannot be looked at (\(Self.reason)).")]
        }
        var problems: [Finding] = []
        let free = Int64(volume.f_bavail) * Int64(volume.f_frsize)
        let wanted = Int64(settings.totalBytes)
        if roost_is_in_memory(place) != 0 {
            problems.append(
                warningFinding(
                    "\(place) is in memory (tmpfs): streams outlive the hub but not a restart of the machine; name a "
                        + "folder on a disk that stays."))
        }
        if free < Self.least {
            problems.append(errorFinding("The disk of \(place) is full, so appends are refused; make room on it."))
        } else if free < wanted - Self.streamBytes(in: place) {
            problems.append(
                warningFinding(
                    "The disk of \(place) has \(free / Self.mebibyte) MiB left, and streams may grow to "
                        + "\(wanted / Self.mebibyte) (streams.total_bytes); make room on it, or lower the limit."))
        }
        // Some file systems have no inode table, and report 0.
        if volume.f_files > 0, Int64(volume.f_favail) < Int64(settings.count) {
            problems.append(
                warningFinding(
                    "The disk of \(place) takes \(volume.f_favail) more files, and there may be \(settings.count) streams "
                        + "(streams.count), a file for each; lower streams.count, or name another folder."))
        }
        return problems
    }

    private func checkDamagedFiles(in folder: String) -> [Finding] {
        let count = Self.fileNames(in: folder).count { $0.hasSuffix(".damaged") }
        guard count > 0 else { return [] }
        return [
            warningFinding(
                "\(folder) has \(count) files that no stream could be made of, put aside as .damaged; look at them, and "
                    + "delete them.")
        ]
    }

    // MARK: Files

    private static var reason: String { String(cString: strerror(errno)) }

    private static func parentFolder(of folder: String) -> String {
        let path = folder.count > 1 && folder.hasSuffix("/") ? String(folder.dropLast()) : folder
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The size of all streams, which count towards their limit.
    private static func streamBytes(in folder: String) -> Int64 {
        fileNames(in: folder).reduce(0) { sum, name in
            var status = stat()
            return name.hasSuffix(".stream") && stat(folder + "/" + name, &status) == 0
                ? sum + Int64(status.st_size) : sum
        }
    }

    /// Empty if the folder cannot be read.
    private static func fileNames(in folder: String) -> [String] { StreamFolder.names(in: folder) ?? [] }
}
