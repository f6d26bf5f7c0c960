import CFuzzer
import Glibc

// roost-fuzz TARGET CORPUS [libFuzzer's arguments]: `scripts/fuzz.sh` runs it. roost-fuzz TARGET FILE repeats one input.
//
// The target's seeds are put into the corpus first. Whatever ends the process is a finding, and libFuzzer leaves the input.

let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: " ")
guard CommandLine.arguments.count > 2, let target = FuzzTarget(rawValue: CommandLine.arguments[1]) else {
    print("roost-fuzz TARGET CORPUS [libFuzzer's arguments], where TARGET is one of: \(names)")
    exit(2)
}

var named = stat()
let isFolder = stat(CommandLine.arguments[2], &named) == 0 && named.st_mode & S_IFMT == S_IFDIR
for (number, seed) in target.seeds.enumerated() where isFolder {
    guard let file = fopen(CommandLine.arguments[2] + "/seed-\(number)", "w") else {
        print("\(CommandLine.arguments[2]) cannot be written")
        exit(2)
    }
    _ = seed.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, file) }
    fclose(file)
}

// libFuzzer reads the first argument as the program's name, and whatever has no dash as a corpus.
var count = CommandLine.argc - 1
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv + 1
exit(
    LLVMFuzzerRunDriver(&count, &arguments) { start, count in
        // A C function captures nothing.
        FuzzTarget(rawValue: CommandLine.arguments[1])?.read(Array(UnsafeBufferPointer(start: start, count: count)))
        return 0
    })
