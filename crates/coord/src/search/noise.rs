//! Noise for a formula in place of a store: a pure function of seed, load and the number of the
//! experiment, so that the order of experiments does not matter.

/// A draw from the standard normal distribution for the experiment with this load that follows
/// `sample` others with it.
pub fn standard_normal(seed: u64, load: u32, sample: usize) -> f64 {
    // Box and Muller's transformation of two uniform draws.
    let draw = |which: u64| uniform(seed, load, 2 * sample as u64 + which);
    (-2.0 * draw(0).ln()).sqrt() * (std::f64::consts::TAU * draw(1)).cos()
}

/// Draw number `draw` for the experiments with this load, from the uniform distribution between 0 and
/// 1. It is neither 0, which has no logarithm, nor 1.
pub fn uniform(seed: u64, load: u32, draw: u64) -> f64 {
    let key = mixed(mixed(mixed(seed) ^ u64::from(load)) ^ draw);
    // 53 bits fill a double.
    ((key >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// SplitMix64's output function: each bit of the input changes half of the output bits.
fn mixed(input: u64) -> u64 {
    let sum = input.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let first = (sum ^ (sum >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    second ^ (second >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_mean_0_deviation_1_and_no_memory() {
        let draws: Vec<f64> =
            (0..10_000).map(|n| standard_normal(n / 300, (n % 100) as u32, (n / 100 % 3) as usize)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let squares: Vec<f64> = draws.iter().map(|x| x * x).collect();
        let products: Vec<f64> = draws.windows(2).map(|pair| pair[0] * pair[1]).collect();
        assert!(mean(&draws).abs() < 0.04 && (mean(&squares) - 1.0).abs() < 0.06 && mean(&products).abs() < 0.04);
        let beyond = draws.iter().filter(|x| x.abs() > 1.96).count();
        assert!((400..600).contains(&beyond), "{beyond} of 10,000 lie beyond 1.96 deviations");
        assert_eq!(standard_normal(1, 2, 0), standard_normal(1, 2, 0));
    }
}
