"""Pictures of a compiled program; `pictures.all` lists them. Each is made of its figures alone."""
