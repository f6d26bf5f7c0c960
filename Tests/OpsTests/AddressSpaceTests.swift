import Ops
import Testing

@Suite struct AddressSpaceTests {
    @Test(arguments: [(0, 1), (300, 1), (511, 1), (512, 2), (900, 3), (8192, 32)] as [(UInt64, Int32)])
    func aQuarterOfALimitIsForArenas(megabytes: UInt64, arenas: Int32) {
        #expect(AddressSpace.arenas(within: megabytes << 20) == arenas)
    }

    @Test func withoutALimitThereIsNone() { #expect(AddressSpace.arenas(within: .max) == nil) }
}
