use super::*;

fn numbers(len: usize) -> Vec<i32> {
    (0..len as i32).collect()
}

/// Every index of a box, in order.
fn indices(dims: &[usize]) -> Vec<Vec<usize>> {
    let total: usize = dims.iter().product();
    (0..total)
        .map(|mut flat| {
            let mut index = vec![0; dims.len()];
            for axis in (0..dims.len()).rev() {
                index[axis] = flat % dims[axis];
                flat /= dims[axis];
            }
            index
        })
        .collect()
}

fn flat(index: &[usize], dims: &[usize]) -> usize {
    index.iter().zip(dims).fold(0, |at, (&i, &d)| at * d + i)
}

#[test]
fn all_permutations() {
    let pool = ThreadPool::new(2);
    for dims in [[3, 17, 5, 33], [1, 40, 1, 20], [2, 2, 3, 2], [65, 1, 1, 70]] {
        let x = numbers(dims.iter().product());
        for code in 0..256 {
            let permutation = [code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3];
            if (0..4).any(|axis| !permutation.contains(&axis)) {
                continue;
            }
            let mut out = vec![-1; x.len()];
            transpose(&pool, &x, &dims, &permutation, &mut out);
            let out_dims = permutation.map(|axis| dims[axis]);
            for (at, index) in indices(&out_dims).iter().enumerate() {
                let mut source = [0; 4];
                (0..4).for_each(|i| source[permutation[i]] = index[i]);
                assert_eq!(out[at], x[flat(&source, &dims)], "{dims:?} by {permutation:?}");
            }
        }
    }
}

#[test]
fn slices_and_their_inverse() {
    let pool = ThreadPool::serial();
    let dims = [5, 6, 7];
    let x = numbers(210);
    let (starts, steps, out_dims) = ([4, 1, 0], [-2, 2, 3], [2, 3, 3]);
    let mut out = vec![0; 18];
    strided_slice(pool, &x, &dims, &starts, &steps, &out_dims, &mut out);
    let source = |index: &[usize]| -> usize {
        let at: Vec<usize> = (0..3)
            .map(|a| (starts[a] as isize + index[a] as isize * steps[a]) as usize)
            .collect();
        flat(&at, &dims)
    };
    for (at, index) in indices(&out_dims).iter().enumerate() {
        assert_eq!(out[at], x[source(index)]);
    }
    let mut back = vec![-1; 210];
    strided_slice_assign(pool, &out, &out_dims, &mut back, &dims, &starts, &steps);
    assert_eq!(back.iter().filter(|&&v| v >= 0).count(), 18);
    assert!(back.iter().enumerate().all(|(i, &v)| v < 0 || v == i as i32));
    let mut reversed = vec![0; 6];
    reverse(pool, &[1, 2, 3, 4, 5, 6], &[2, 3], &[1], &mut reversed);
    assert_eq!(reversed, [3, 2, 1, 6, 5, 4]);
}

#[test]
#[should_panic(expected = "out of bounds")]
fn slices_are_checked() {
    strided_slice(
        ThreadPool::serial(),
        &[1, 2, 3],
        &[3],
        &[1],
        &[1],
        &[3],
        &mut [0; 3],
    );
}

#[test]
fn padding_of_all_kinds() {
    let pool = ThreadPool::serial();
    let mut out = [0; 10];
    pad(pool, &[1, 2, 3], &[3], &[2], &[1], 9, &mut out, &[10]);
    assert_eq!(out, [9, 9, 1, 9, 2, 9, 3, 9, 9, 9]);
    let mut out = [0; 2];
    pad(pool, &[1, 2, 3, 4], &[4], &[-1], &[0], 9, &mut out, &[2]);
    assert_eq!(out, [2, 3]);
    let mut out = [0; 4];
    pad(pool, &[1, 2, 3], &[3], &[-1], &[1], 9, &mut out, &[4]);
    assert_eq!(out, [9, 2, 9, 3]);
    let mut out = [0; 12];
    pad(
        pool,
        &[1, 2, 3, 4],
        &[2, 2],
        &[1, 0],
        &[0, 0],
        0,
        &mut out,
        &[3, 4],
    );
    assert_eq!(out, [0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0]);
    let mut out = [0; 3];
    pad(pool, &[1], &[1], &[-2], &[0], 7, &mut out, &[3]);
    assert_eq!(out, [7, 7, 7]);
}

#[test]
fn concat_and_tile() {
    let pool = ThreadPool::serial();
    let mut out = [0; 10];
    concat(
        pool,
        2,
        &[(&[1, 2, 3, 4], 2), (&[], 0), (&[5, 6, 7, 8, 9, 10], 3)],
        &mut out,
    );
    assert_eq!(out, [1, 2, 5, 6, 7, 3, 4, 8, 9, 10]);
    let mut out = [0; 12];
    tile(pool, &[1, 2, 3], &[1, 3], &[2, 2], &mut out);
    assert_eq!(out, [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]);
}

#[test]
fn gathers_with_batches() {
    let pool = ThreadPool::serial();
    let x = numbers(2 * 3 * 2);
    let mut out = [0; 8];
    gather(pool, &x, (2, 2, 3, 2), &[2, 0, 1, 5], -1, &mut out);
    assert_eq!(out, [4, 5, 0, 1, 8, 9, -1, -1]);
    let mut out = [0; 8];
    gather(pool, &x, (1, 2, 3, 2), &[2, -1], -1, &mut out);
    assert_eq!(out, [4, 5, -1, -1, 10, 11, -1, -1]);
    let mut sums = [0; 4];
    scatter_rows(&[1, 2, 3, 4], &[2, -1, 2, 0], 1, &mut sums, |old, new| old + new);
    assert_eq!(sums, [4, 0, 4, 0]);
}

struct Transposed<'a>(&'a [usize]);
impl Movement for Transposed<'_> {
    fn run<T: Copy + Send + Sync>(self, x: &[T], out: &mut [T]) {
        transpose(ThreadPool::serial(), x, self.0, &[1, 0], out);
    }
}

#[test]
fn bytes_by_element_size() {
    for size in [1, 2, 4, 8, 16] {
        let x: Vec<u8> = (0..6 * size as u8).collect();
        let mut out = vec![0; x.len()];
        assert!(by_size(size, &x, &mut out, Transposed(&[2, 3])));
        let order: Vec<u8> = out.iter().step_by(size).map(|b| b / size as u8).collect();
        assert_eq!(order, [0, 3, 1, 4, 2, 5]);
    }
    assert!(!by_size(3, &[0; 6], &mut [0; 6], Transposed(&[1, 2])));
}
