//! Meshes with values in VTK's legacy format, which ParaView reads.

use std::io::Write;
use std::path::Path;

use residuum::{Error, Result, io};

use crate::case::{Domain, Shape};

/// Points, cells as numbers of points, the type of the cells, and values at the points.
struct Grid {
    points: Vec<[f64; 3]>,
    cells: Vec<Vec<usize>>,
    kind: u8,
    values: Vec<f64>,
}

/// Cells of degree `p` are cut into `p³` hexahedra, so that what is curved shows.
fn grid(domain: &Domain, x: &[f64]) -> Result<Option<Grid>> {
    let mut grid = Grid { points: Vec::new(), cells: Vec::new(), kind: 12, values: Vec::new() };
    match &domain.shape {
        Shape::Solid { mesh, on: Some((space, load)) } => {
            let solution = load.solution(space, x)?;
            for (c, cell) in mesh.views().enumerate() {
                let (n, first) = (cell.degree + 1, grid.points.len());
                for k in 0..n * n * n {
                    let t = [k % n, k / n % n, k / (n * n)].map(|k| k as f64 / cell.degree as f64);
                    grid.points.push(solution.place_in(c, t));
                    grid.values.push(solution.value_in(c, t));
                }
                let inner = (0..n - 1)
                    .flat_map(|k| (0..n - 1).flat_map(move |j| (0..n - 1).map(move |i| i + n * (j + n * k))));
                let corners = [0, 1, n + 1, n, n * n, n * n + 1, n * n + n + 1, n * n + n];
                grid.cells.extend(inner.map(|at| corners.iter().map(|corner| first + at + corner).collect()));
            }
        }
        Shape::Plane { mesh, on: Some(system) } => {
            grid.kind = 5;
            grid.points = mesh.points().iter().map(|[x, y]| [*x, *y, 0.0]).collect();
            grid.cells = mesh.triangles().iter().map(|t| t.iter().map(|k| *k as usize).collect()).collect();
            grid.values = system.values(x)?;
        }
        _ => return Ok(None),
    }
    Ok(Some(grid))
}

/// Writes the mesh with its values `u`.
pub(crate) fn write(path: &Path, domain: &Domain, x: &[f64]) -> Result<()> {
    let Some(Grid { points, cells, kind, values }) = grid(domain, x)? else { return Ok(()) };
    if points.len().max(cells.len() * 9) > i32::MAX as usize {
        return Err(Error::Option { name: "vtk", reason: "the format counts no more than 2^31 points".into() });
    }
    io::write_atomically(path, |file| {
        let mut file = std::io::BufWriter::new(file);
        write!(file, "# vtk DataFile Version 3.0\n-Laplace u = f\nBINARY\nDATASET UNSTRUCTURED_GRID\n")?;
        writeln!(file, "POINTS {} double", points.len())?;
        points.iter().flatten().try_for_each(|x| file.write_all(&x.to_be_bytes()))?;
        let numbers: usize = cells.iter().map(|cell| 1 + cell.len()).sum();
        writeln!(file, "\nCELLS {} {numbers}", cells.len())?;
        for cell in &cells {
            file.write_all(&(cell.len() as i32).to_be_bytes())?;
            cell.iter().try_for_each(|k| file.write_all(&(*k as i32).to_be_bytes()))?;
        }
        writeln!(file, "\nCELL_TYPES {}", cells.len())?;
        cells.iter().try_for_each(|_| file.write_all(&i32::from(kind).to_be_bytes()))?;
        writeln!(file, "\nPOINT_DATA {}\nSCALARS u double 1\nLOOKUP_TABLE default", points.len())?;
        values.iter().try_for_each(|u| file.write_all(&u.to_be_bytes()))?;
        file.flush()
    })
}
