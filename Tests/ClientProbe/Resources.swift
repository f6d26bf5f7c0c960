import Foundation

/// What the process holds, as Linux tells it.
enum Resources {
    static var files: Int { list("/proc/self/fd").count }

    /// Threads that serve a socket. Others belong to the process and stay.
    static var sockets: Int {
        list("/proc/self/task").count { task in
            do {
                let name = try String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)
                return name.hasPrefix("roost-socket")
            } catch {
                // It ended while we looked.
                return false
            }
        }
    }

    private static func list(_ folder: String) -> [String] {
        do { return try FileManager.default.contentsOfDirectory(atPath: folder) } catch { return [] }
    }
}
