import COpsFiles

/// The page's files, embedded in the binary, by their names.
enum OpsFiles {
    static let all: [String: [UInt8]] = {
        var count = 0
        let files = UnsafeBufferPointer(start: roost_ops_files(&count), count: count)
        return Dictionary(
            uniqueKeysWithValues: files.map { file in
                (String(cString: file.name), Array(UnsafeBufferPointer(start: file.bytes, count: file.length)))
            })
    }()
}
