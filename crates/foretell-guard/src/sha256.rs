//! SHA-256 (FIPS 180-4), the hash by which files, programs, proofs and scripts of an HTML report are named.

/// The first 64 prime numbers: their roots give the constants.
const PRIMES: [u32; 64] = {
    let mut primes = [0; 64];
    let (mut count, mut candidate) = (0, 2);
    while count < 64 {
        let (mut divisor, mut prime) = (2, true);
        while divisor * divisor <= candidate {
            prime &= candidate % divisor != 0;
            divisor += 1;
        }
        if prime {
            primes[count] = candidate;
            count += 1;
        }
        candidate += 1;
    }
    primes
};

/// The first 32 bits of the fraction of the square root (`power` 2) or cube root (3) of a number.
const fn fraction(number: u32, power: u32) -> u32 {
    // The largest `root` with root^power <= number * 2^(32 * power).
    let (mut root, mut bit) = (0u128, 1u128 << 36);
    while bit > 0 {
        let next = root + bit;
        // In units of 2^-32, both sides stay below 2^128.
        let fits = match power {
            2 => next * next <= (number as u128) << 64,
            _ => next * next * next <= (number as u128) << 96,
        };
        if fits {
            root = next;
        }
        bit >>= 1;
    }
    root as u32
}

const ROUNDS: [u32; 64] = {
    let (mut constants, mut i) = ([0; 64], 0);
    while i < 64 {
        constants[i] = fraction(PRIMES[i], 3);
        i += 1;
    }
    constants
};

/// The hash of some bytes.
pub fn hash(bytes: &[u8]) -> [u8; 32] {
    let mut message = bytes.to_vec();
    message.push(0x80);
    message.resize((message.len() + 8).div_ceil(64) * 64 - 8, 0);
    message.extend((bytes.len() as u64 * 8).to_be_bytes());
    let mut state: [u32; 8] = std::array::from_fn(|i| fraction(PRIMES[i], 2));
    for block in message.chunks_exact(64) {
        let mut words = [0u32; 64];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
        }
        for i in 16..64 {
            let (a, b) = (words[i - 15], words[i - 2]);
            let small = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let large = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            words[i] =
                words[i - 16].wrapping_add(small).wrapping_add(words[i - 7]).wrapping_add(large);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (word, constant) in words.into_iter().zip(ROUNDS) {
            let large = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let one = h
                .wrapping_add(large)
                .wrapping_add((e & f) ^ (!e & g))
                .wrapping_add(constant)
                .wrapping_add(word);
            let small = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let two = small.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            (h, g, f, e, d, c, b, a) =
                (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
        }
        for (old, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *old = old.wrapping_add(new);
        }
    }
    let mut hash = [0; 32];
    for (bytes, word) in hash.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

/// The hash in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    hash(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(
            hex(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
    }
}
