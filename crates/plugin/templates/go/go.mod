module NAME

go 1.24
