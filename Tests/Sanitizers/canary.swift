import Glibc
import Synchronization

// canary LOCKED|HANDED|RACE|OVERFLOW|LEAK: what a sanitizer has to find, and what it must not. scripts/test-sanitizers.sh
// runs it before the tests: no report says something only where these are made.

final class Shared: Sendable {
    let locked = Mutex<[Int]>([])
    nonisolated(unsafe) var unlocked = 0
    let finished = Atomic<Int>(0)
}

let shared = Shared()

/// Two threads do it at once, which they would not if each did it once.
func run(_ work: @escaping @Sendable @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?) {
    var threads = [pthread_t(), pthread_t()]
    for index in threads.indices { pthread_create(&threads[index], nil, work, nil) }
    for thread in threads { pthread_join(thread, nil) }
}

@main
enum Canary {
    static func main() {
        switch CommandLine.arguments.last {
        case "LOCKED":
            run { _ in
                for number in 0..<20_000 { shared.locked.withLock { $0.append(number) } }
                shared.finished.add(1, ordering: .releasing)
                return nil
            }
            exit(shared.finished.load(ordering: .acquiring) == 2 ? 0 : 1)
        case "HANDED":
            run { _ in
                var own: [Int] = []
                var sum = 0
                for number in 0..<20_000 {
                    own.append(number)
                    shared.locked.withLock { $0 = own }
                    let other = shared.locked.withLock { $0 }
                    for number in other { sum &+= number }
                    // In place, once the other thread has read it and has the next one.
                    own.removeAll(keepingCapacity: true)
                }
                shared.finished.add(sum, ordering: .releasing)
                return nil
            }
        case "RACE":
            run { _ in
                for _ in 0..<20_000 { shared.unlocked += 1 }
                return nil
            }
        case "OVERFLOW":
            let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: CommandLine.arguments.count)
            bytes[CommandLine.arguments.count] = 1
            bytes.deallocate()
        case "LEAK":
            // One is in a register still when the process ends.
            for number in 1...10 { UnsafeMutablePointer<Int>.allocate(capacity: 1_000).initialize(to: number) }
        default: exit(64)
        }
    }
}
