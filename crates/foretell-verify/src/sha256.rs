//! SHA-256, by which proofs and witnesses name the program that they speak of.

/// The hash as hexadecimal digits.
pub(crate) fn hex(message: &[u8]) -> String {
    sha256(message).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 (FIPS 180-4).
fn sha256(message: &[u8]) -> [u8; 32] {
    // the first bits of the fractional parts of square and cube roots of primes
    let primes: Vec<u64> = (2u64..).filter(|n| (2..*n).all(|d| n % d != 0)).take(64).collect();
    let root = |prime: u64, cube: bool| -> u32 {
        // floor(root * 2^32), whose lower half is the fraction
        let (mut low, mut high) = (0u128, 1u128 << 37);
        while high - low > 1 {
            let middle = (low + high) / 2;
            let fits = match cube {
                true => middle * middle * middle <= u128::from(prime) << 96,
                false => middle * middle <= u128::from(prime) << 64,
            };
            if fits { low = middle } else { high = middle }
        }
        low as u32
    };
    let constants: Vec<u32> = primes.iter().map(|&prime| root(prime, true)).collect();
    let mut hash: Vec<u32> = primes[..8].iter().map(|&prime| root(prime, false)).collect();
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut words: Vec<u32> = block
            .chunks(4)
            .map(|bytes| bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte)))
            .collect();
        for at in 16..64 {
            let (a, b) = (words[at - 15], words[at - 2]);
            let one = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let two = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            words.push(
                words[at - 16].wrapping_add(one).wrapping_add(words[at - 7]).wrapping_add(two),
            );
        }
        let mut v = hash.clone();
        for (word, constant) in words.iter().zip(&constants) {
            let sum = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let choice = v[4] & v[5] ^ !v[4] & v[6];
            let one = [sum, choice, *constant, *word]
                .iter()
                .fold(v[7], |sum, term| sum.wrapping_add(*term));
            let sum = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let majority = v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2];
            let two = sum.wrapping_add(majority);
            v.rotate_right(1);
            v[4] = v[4].wrapping_add(one);
            v[0] = one.wrapping_add(two);
        }
        for (total, value) in hash.iter_mut().zip(v) {
            *total = total.wrapping_add(value);
        }
    }
    let mut bytes = [0; 32];
    for (place, word) in bytes.chunks_mut(4).zip(hash) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn the_hash_is_that_of_the_standard() {
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
