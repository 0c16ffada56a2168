module outflow.example/thinner

go 1.24
