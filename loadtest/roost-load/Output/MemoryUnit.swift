/// The unit in which some memory reads best; each has 1,024 of the one before.
enum MemoryUnit: String {
    case kilobytes = "KB"
    case megabytes = "MB"
    case gigabytes = "GB"

    init(fitting kilobytes: Double) {
        self = kilobytes.magnitude < 1024 ? .kilobytes : kilobytes.magnitude < 1024 * 1024 ? .megabytes : .gigabytes
    }

    var kilobytes: Double {
        switch self {
        case .kilobytes: 1
        case .megabytes: 1024
        case .gigabytes: 1024 * 1024
        }
    }
}
