[inputs: ["{mix,.formatter}.exs", "{test,bench,examples}/**/*.{ex,exs}"]]
